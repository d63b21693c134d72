import type { Authentication } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import { isPending } from '../pending.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Lets those who may act as somebody else; both identities stay known. */
export function impersonate(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const acting = parts.impersonate(exchange.request, exchange.authentication, exchange.signal)
  if (isPending(acting)) return acting.then((result) => actAs(exchange, result))
  actAs(exchange, acting)
  return undefined
}

function actAs(exchange: Exchange, acting: Authentication): void {
  if (acting !== exchange.authentication) {
    exchange.impersonator = exchange.authentication
    exchange.authentication = acting
  }
  cutWhenCredentialDies(exchange)
}

const longestTimerMs = 2 ** 31 - 1

/** A stream must not outlive the credential that opened it. */
function cutWhenCredentialDies(exchange: Exchange): void {
  if (!exchange.longRunning) return
  const expiresAt = Math.min(
    exchange.authentication.expiresAt ?? Number.POSITIVE_INFINITY,
    exchange.impersonator?.expiresAt ?? Number.POSITIVE_INFINITY,
  )
  const remainingMs = expiresAt - exchange.receivedAt
  if (remainingMs > longestTimerMs) return
  exchange.deadline = setTimeout(cut, Math.max(0, remainingMs), exchange)
}

function cut(exchange: Exchange): void {
  exchange.cut(new Error('the credential has expired'))
}
