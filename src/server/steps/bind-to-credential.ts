import { type Authentication, longestTimerMs, StreamCut } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** A stream must not outlive the credentials that opened it: it ends when one expires, is revoked or loses its CA. */
export function bindToCredential(exchange: Exchange, parts: PipelineParts): void {
  if (!exchange.longRunning) return
  bind(exchange, exchange.authentication, parts)
  if (exchange.impersonator) bind(exchange, exchange.impersonator, parts)
  const cut = (): void => exchange.cut(new StreamCut('revoked'))
  const stop = parts.onDistrusted?.(exchange.request, cut)
  if (stop) exchange.onEnd(stop)
}

function bind(exchange: Exchange, authentication: Authentication, parts: PipelineParts): void {
  const stop = parts.onRevoked?.(authentication, () => exchange.cut(new StreamCut('revoked')))
  if (stop) exchange.onEnd(stop)
  const remainingMs = (authentication.expiresAt ?? Number.POSITIVE_INFINITY) - exchange.receivedAt
  if (remainingMs > longestTimerMs) return
  const timer = setTimeout(expire, Math.max(0, remainingMs), exchange)
  exchange.onEnd(() => clearTimeout(timer))
}

function expire(exchange: Exchange): void {
  exchange.cut(new StreamCut('credential-expired'))
}
