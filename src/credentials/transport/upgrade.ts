import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { onAbort } from '../../core/index.ts'
import { discard, refusalOf } from './authenticated-request.ts'
import type { Connections, Identity } from './connections.ts'
import {
  ConnectionRetired,
  connectionFailed,
  type RefusedUpgrade,
  UpgradeRefused,
} from './errors.ts'
import { authorizationOf, openHttp1, withIdentity, withLowerCaseNames } from './send.ts'
import type { RequestHeaders } from './types.ts'

/** More than any Status object, less than a page that nobody reads. */
const maxBytes = 64 * 1024
/** Longer than any refusal takes from its head to its end. */
const restMs = 1_000

/** Reads the answer of a server that does not change the protocol, as much of it as an error may carry. */
export function readRefusedUpgrade(message: IncomingMessage): Promise<RefusedUpgrade> {
  const { statusCode: status = 0, headers } = message
  const chunks: Buffer[] = []
  let size = 0
  return new Promise((resolve) => {
    const timer = setTimeout(() => message.destroy(), restMs)
    message.on('error', () => {}) // what has come until then is what there is
    message.on('data', (chunk: Buffer) => {
      size += chunk.length
      chunks.push(chunk)
      if (size > maxBytes) message.destroy()
    })
    message.once('close', () => {
      clearTimeout(timer)
      const body = Buffer.concat(chunks).subarray(0, maxBytes)
      resolve({ status, headers, body, whole: message.complete && size <= maxBytes })
    })
  })
}

const unauthorized = 401

/** A request to speak another protocol on the connection. */
export interface UpgradeRequest {
  /** Path and query below the server's address, beginning with a slash. */
  readonly path: string
  /** Names in lower case; `upgrade` names the protocol. */
  readonly headers: RequestHeaders & { readonly upgrade: string }
  /** GET unless given; SPDY uses POST. */
  readonly method?: string
  /** As for requests: a 401 says nothing about our credential. */
  readonly relayed?: boolean
  /** Ends the attempt; a connection that has been handed over is the caller's. */
  readonly signal: AbortSignal
}

/** A connection on which another protocol begins. */
export interface Upgraded {
  readonly headers: IncomingHttpHeaders
  /** Also closed when the certificate that opened it is replaced. */
  readonly socket: Duplex
}

/** What came of asking: a connection that speaks the protocol, or an ordinary answer to be read or destroyed. */
export type UpgradeOutcome =
  | { readonly upgraded: Upgraded; readonly refused?: undefined }
  | { readonly refused: IncomingMessage; readonly upgraded?: undefined }

/** Asks the server to change the protocol. Rejects with UpgradeRefused for every other answer. */
export async function openUpgrade(
  connections: Connections,
  request: UpgradeRequest,
): Promise<Upgraded> {
  const { upgraded, refused } = await requestUpgrade(connections, request)
  if (upgraded) return upgraded
  throw new UpgradeRefused(connections.server, await readRefusedUpgrade(refused))
}

/**
 * Asks the server to change the protocol, as whom the credentials say, and once more with a new credential
 * after a 401.
 */
export async function requestUpgrade(
  connections: Connections,
  given: UpgradeRequest,
): Promise<UpgradeOutcome> {
  const headers = { ...withLowerCaseNames(given.headers), upgrade: given.headers.upgrade }
  const request = { ...given, headers }
  const identity = await connections.identityFor(headers, request.signal)
  const first = await attempt(connections, request, identity)
  const { credential } = identity
  if (first.refused?.statusCode !== unauthorized || !credential || request.relayed) return first
  const refusal = refusalOf({ status: unauthorized, headers: first.refused.headers })
  const next = await connections.source?.renew(credential, refusal, request.signal)
  if (!next) return first
  discard(first.refused)
  return attempt(connections, request, connections.identityOf(next))
}

async function attempt(
  connections: Connections,
  request: UpgradeRequest,
  { credential, generation }: Identity,
): Promise<UpgradeOutcome> {
  request.signal.throwIfAborted()
  const authorization = credential && authorizationOf(credential)
  const wanted = { ...request.headers, connection: 'Upgrade' }
  const headers = withIdentity(wanted, connections.options.headers, authorization)
  const sent = { ...request, method: request.method ?? 'GET' }
  try {
    return await outcomeOf(
      openHttp1(generation.streams, { connections, request: sent, headers }),
      request.signal,
    )
  } catch (error) {
    request.signal.throwIfAborted()
    if (!(error instanceof ConnectionRetired) || error.sent)
      throw connectionFailed(connections.server, error)
    const again = await connections.identityFor(request.headers, request.signal)
    return attempt(connections, request, again)
  }
}

function outcomeOf(outgoing: ClientRequest, signal: AbortSignal): Promise<UpgradeOutcome> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      outgoing.destroy()
      reject(signal.reason)
    }
    const forget = onAbort(signal, abort)
    outgoing.once('close', forget)
    outgoing.once('upgrade', ({ headers }: IncomingMessage, socket: Duplex, head: Buffer) => {
      forget()
      if (head.length > 0) socket.unshift(head)
      resolve({ upgraded: { headers, socket } })
    })
    outgoing.once('response', (refused: IncomingMessage) => resolve({ refused }))
    outgoing.on('error', reject)
    outgoing.end()
  })
}
