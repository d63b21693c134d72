import type { IncomingMessage } from 'node:http'
import type { Agent } from 'node:https'
import {
  agentFor,
  authorizationOf,
  type Connections,
  connectionFailed,
  type RefusedUpgrade,
  readRefusedUpgrade,
  refusalOf,
  UpgradeRefused,
  withIdentity,
  withLowerCaseNames,
} from '../transport/index.ts'

const unauthorized = 401

/** What is used of a client of the package `ws`. */
export interface WebSocketLike {
  on(
    event: 'unexpected-response',
    listener: (request: unknown, response: IncomingMessage) => void,
  ): this
  on(event: 'error', listener: (error: Error) => void): this
  on(event: 'open', listener: () => void): this
  terminate(): void
}

/** The class `WebSocket` of the package `ws`, version 8. */
export type WebSocketClass<Client extends WebSocketLike> = new (
  url: string,
  protocols: string[],
  options: { headers: Record<string, string | readonly string[]>; agent: Agent },
) => Client

/** A WebSocket to open. */
export interface WebSocketOrder {
  /** Path and query below the server's address, beginning with a slash. */
  readonly path: string
  readonly protocols?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  /** Further options of `ws`, such as `maxPayload`. */
  readonly options?: object
  /** Ends the attempt; a WebSocket that is open is the caller's. */
  readonly signal: AbortSignal
}

/**
 * An open WebSocket of the caller's `ws`, as whom the credentials say; after a 401 once more with a new
 * credential. It closes when the certificate that opened it is replaced.
 */
export async function connectWebSocket<Client extends WebSocketLike>(
  type: WebSocketClass<Client>,
  connections: Connections,
  order: WebSocketOrder,
): Promise<Client> {
  const { credential } = await connections.identityFor(
    withLowerCaseNames(order.headers ?? {}),
    order.signal,
  )
  const first = await attempt(type, connections, order)
  if (!first.refused) return first.open
  const refused = first.refused.status === unauthorized ? credential : undefined
  const refusal = refusalOf(first.refused)
  const next = refused && (await connections.source?.renew(refused, refusal, order.signal))
  if (!next) throw new UpgradeRefused(connections.server, first.refused)
  const second = await attempt(type, connections, order)
  if (!second.refused) return second.open
  throw new UpgradeRefused(connections.server, second.refused)
}

type Outcome<Client> =
  | { readonly open: Client; readonly refused?: undefined }
  | { readonly refused: RefusedUpgrade; readonly open?: undefined }

async function attempt<Client extends WebSocketLike>(
  type: WebSocketClass<Client>,
  connections: Connections,
  order: WebSocketOrder,
): Promise<Outcome<Client>> {
  const { signal } = order
  const sent = withLowerCaseNames(order.headers ?? {})
  const { credential } = await connections.identityFor(sent, signal)
  const authorization = credential && authorizationOf(credential)
  const client = new type(webSocketUrl(connections, order.path), [...(order.protocols ?? [])], {
    ...order.options,
    headers: withIdentity(sent, connections.options.headers, authorization),
    agent: agentFor(connections, sent),
  })
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      client.terminate()
      reject(signal.reason)
    }
    const release = (): void => signal.removeEventListener('abort', abort)
    signal.addEventListener('abort', abort, { once: true })
    client.on('open', () => {
      release()
      resolve({ open: client })
    })
    client.on('unexpected-response', (_request, refused) => {
      release()
      void readRefusedUpgrade(refused).then((answer) => {
        resolve({ refused: answer })
        client.terminate()
      })
    })
    client.on('error', (error) => {
      release()
      reject(connectionFailed(connections.server, error))
    })
  })
}

const webSocketUrl = ({ server }: Connections, path: string): string =>
  server.replace(/^http/, 'ws') + path
