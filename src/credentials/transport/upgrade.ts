import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Connections, Identity } from './connections.ts'
import { discard, refusalOf } from './identified-request.ts'
import { authorizationOf, withIdentity } from './identity-headers.ts'
import { openHttp1 } from './send-once.ts'
import { ConnectionRetired, connectionFailed, UpgradeRefused } from './transport-errors.ts'
import type { RequestHeaders } from './transport-types.ts'

const unauthorized = 401

/** A request to speak another protocol on the connection. */
export interface UpgradeRequest {
  /** Path and query below the server's address, beginning with a slash. */
  readonly path: string
  /** Names in lower case; `upgrade` names the protocol. */
  readonly headers: RequestHeaders & { readonly upgrade: string }
  /** GET unless given; SPDY uses POST. */
  readonly method?: string
  /** Ends the attempt; a connection that has been handed over is the caller's. */
  readonly signal: AbortSignal
}

/** A connection on which another protocol begins. */
export interface Upgraded {
  readonly headers: IncomingHttpHeaders
  /** Also closed when the certificate that opened it is replaced. */
  readonly socket: Duplex
}

type Outcome =
  | { readonly upgraded: Upgraded }
  | { readonly refused: IncomingMessage; readonly upgraded?: undefined }

/**
 * Asks the server to change the protocol, as whom the credentials say, and once more with a new credential
 * after a 401. Rejects with UpgradeRefused for every other answer.
 */
export async function openUpgrade(
  connections: Connections,
  request: UpgradeRequest,
): Promise<Upgraded> {
  const own = request.headers['authorization'] !== undefined || !connections.source
  const identity = own
    ? { credential: undefined, generation: connections.anonymous() }
    : await connections.identity(request.signal)
  const first = await attempt(connections, request, identity)
  if (first.upgraded) return first.upgraded
  const { statusCode: status = 0, headers } = first.refused
  const { credential } = identity
  discard(first.refused)
  if (status !== unauthorized || !credential) throw new UpgradeRefused(connections.server, status)
  const refusal = refusalOf({ status, headers })
  const next = await connections.source?.renew(credential, refusal, request.signal)
  if (!next) throw new UpgradeRefused(connections.server, status)
  const second = await attempt(connections, request, connections.identityOf(next))
  if (second.upgraded) return second.upgraded
  discard(second.refused)
  throw new UpgradeRefused(connections.server, second.refused.statusCode ?? 0)
}

async function attempt(
  connections: Connections,
  request: UpgradeRequest,
  { credential, generation }: Identity,
): Promise<Outcome> {
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
    return attempt(connections, request, await connections.identity(request.signal))
  }
}

function outcomeOf(outgoing: ClientRequest, signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      outgoing.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    outgoing.once('close', () => signal.removeEventListener('abort', abort))
    outgoing.once('upgrade', ({ headers }: IncomingMessage, socket: Duplex, head: Buffer) => {
      signal.removeEventListener('abort', abort)
      if (head.length > 0) socket.unshift(head)
      resolve({ upgraded: { headers, socket } })
    })
    outgoing.once('response', (refused: IncomingMessage) => resolve({ refused }))
    outgoing.on('error', reject)
    outgoing.end()
  })
}
