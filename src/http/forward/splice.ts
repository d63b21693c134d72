import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { onAbort } from '../../core/index.ts'
import { copyStream, type Meters } from '../copy-stream.ts'
import { rawHeaderValues, responseHead } from '../headers.ts'
import type { UpgradingClient } from '../upgrade.ts'
import { type ResponseHead, ResponseInvalid } from '../upstream/index.ts'
import { Forwarding, type ForwardOptions } from './forwarder.ts'

/** Where and how a request for another protocol is forwarded. */
export interface UpgradeOptions extends ForwardOptions, SpliceOptions {
  readonly protocol: string
}

/** How long two connections stay joined. */
interface SpliceOptions {
  readonly meters?: Meters
  /** Without a byte in either direction. */
  readonly idleMs?: number
  /** TCP keep-alive period of both connections. */
  readonly keepAliveMs?: number
  /** Closes both. */
  readonly signal?: AbortSignal
}

/** How an upgrade ended: `refused` if the upstream has not agreed to it. */
export interface UpgradeResult {
  readonly status: number
  readonly end: 'closed' | 'idle' | 'refused'
}

/**
 * Requests the protocol from the upstream and joins both connections; resolves when both are closed. Any other response
 * is forwarded and ends both connections, so that nothing can hide behind a handshake that failed. Rejects while nothing
 * was sent to the client.
 */
export function forwardUpgrade(
  request: IncomingMessage,
  client: UpgradingClient,
  options: UpgradeOptions,
): Promise<UpgradeResult> {
  return new Promise((resolve, reject) => {
    const { response } = client
    const { protocol } = options
    const join = (head: ResponseHead, connection: Duplex): void => {
      joinUpgraded(client, options, { head, connection }).then(
        (end) => resolve({ status: head.status, end }),
        (error: unknown) => {
          connection.destroy()
          reject(options.policy.failure(error))
        },
      )
    }
    const refused = (): void => {
      if (response.headersSent) resolve({ status: response.statusCode, end: 'refused' })
      else reject(options.policy.failure(new Error('the client has disconnected')))
    }
    const outcome = { resolve: refused, reject }
    new Forwarding(request, response, options, [outcome, { protocol, join }]).start()
  })
}

async function joinUpgraded(
  client: UpgradingClient,
  options: UpgradeOptions,
  { head, connection }: { readonly head: ResponseHead; readonly connection: Duplex },
): Promise<'closed' | 'idle'> {
  const { protocol, policy } = options
  connection.on('error', () => connection.destroy())
  const [agreed = '', ...others] = rawHeaderValues(head.rawHeaders, 'upgrade')
  if (others.length > 0 || agreed.trim().toLowerCase() !== protocol.toLowerCase())
    throw new ResponseInvalid('it agreed to another protocol than was requested')
  const headers = policy.responseHeaders(head)
  const socket = client.claim()
  const own = ['Upgrade', protocol, 'Connection', 'Upgrade']
  socket.write(responseHead(head.status, [...own, ...headers]), 'latin1')
  if (client.head.length > 0) socket.unshift(client.head)
  return splice(socket, connection, options)
}

/** Each direction ends by itself; a connection that is closed closes the other one. Resolves when both are closed. */
async function splice(
  client: Duplex,
  upstream: Duplex,
  { meters = unmetered, idleMs, keepAliveMs, signal }: SpliceOptions,
): Promise<'closed' | 'idle'> {
  const sides = [client, upstream]
  let end: 'closed' | 'idle' = 'closed'
  const close = (): void => {
    for (const side of sides) side.destroy()
  }
  // What the upstream sends is written to the client: this end is idle only if both are.
  if (idleMs !== undefined && client instanceof Socket)
    client.setTimeout(idleMs, () => {
      end = 'idle'
      close()
    })
  for (const side of sides) {
    side.on('error', close)
    if (keepAliveMs !== undefined && side instanceof Socket) side.setKeepAlive(true, keepAliveMs)
  }
  const closed = sides.map((side) => closeOf(side).then(close))
  const forget = signal && onAbort(signal, close)
  copyStream(client, upstream, meters.toUpstream)
  copyStream(upstream, client, meters.toClient)
  if (signal?.aborted) close()
  await Promise.all(closed)
  forget?.()
  return end
}

const unmetered: Meters = { toUpstream: () => 0, toClient: () => 0 }

const closeOf = (stream: Duplex): Promise<void> =>
  new Promise((resolve) => {
    if (stream.closed) resolve()
    else stream.once('close', resolve)
  })
