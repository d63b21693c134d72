import { request as openRequest } from 'node:http'
import type { Duplex } from 'node:stream'
import { finished } from 'node:stream/promises'
import { pause, responseTo, withinTime } from '../../core/index.ts'
import { renewTunnelHeader, tunnelHeader } from '../token/index.ts'
import type { Forwarding } from './forward/exchange.ts'

const answerMs = 10_000

/** The name that the guard of an add-on has given to a tunnel, if there is one. */
export function tunnelNameIn(headers: NodeJS.Dict<string | string[]>): string | undefined {
  const name = headers[tunnelHeader.toLowerCase()]
  return typeof name === 'string' && /^[\w-]{1,64}$/.test(name) ? name : undefined
}

/**
 * Lets a tunnel outlive the token that it was opened with: before that ends, the guard is sent a fresh one of the same
 * user. It stops with the tunnel, and so with the user's rights. A guard that is not reached cuts the tunnel itself.
 */
export async function keepTunnel(
  forwarding: Forwarding,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const { renewal } = forwarding
  if (!renewal) return
  for (;;) {
    await pause(renewal.everyMs, signal)
    if (signal.aborted) return
    // What fails now may work the next time; until then the token that it had may be enough.
    await renewOnce(forwarding, renewal, name, signal).catch(() => {})
  }
}

async function renewOnce(
  forwarding: Forwarding,
  renewal: NonNullable<Forwarding['renewal']>,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const token = await renewal.token()
  const headers = [renewTunnelHeader, name, 'Authorization', `Bearer ${token}`]
  await withinTime(answerMs, signal, (within) => renew(forwarding, headers, within))
}

async function renew(
  { connections, backend, path, places }: Forwarding,
  headers: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const connection: Duplex = await connections.open(backend, signal)
  connection.on('error', () => {})
  try {
    const asked = openRequest({
      createConnection: () => connection,
      protocol: 'http:',
      host: backend.host,
      port: backend.port,
      method: 'GET',
      path,
      headers: ['Host', places.requestHost, 'Connection', 'close', ...headers],
      signal,
    })
    const answer = await responseTo(asked.end())
    await finished(answer.resume())
  } finally {
    connection.destroy()
  }
}
