import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type Ground, startNginx } from '../guard/contestants.ts'

/** Bytes of the answers that are measured. */
export const sizes = { small: 1024, large: 2 ** 20 } as const

/** Where an application listens. */
export interface Place {
  readonly address: string
  readonly port: number
}

/** An address of this machine at which a Pod could be: neither server proxies to loopback. */
export function outwardAddress(): string {
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')
  if (found) return found.address
  throw new Error('this machine has loopback addresses only, to which no service proxy forwards')
}

/** nginx with an answer of each size at `/small` and `/large`, as quick as a backend can be. */
export async function startHttpBackend(
  ground: Pick<Ground, 'directory' | 'stops'>,
  address: string,
): Promise<Place & { readonly pid: number }> {
  const { directory } = ground
  for (const [name, bytes] of Object.entries(sizes))
    await writeFile(join(directory, name), 'x'.repeat(bytes))
  const running = await startNginx(ground, 'backend', (port) => {
    const listen = ['127.0.0.1', address].map((each) => `listen ${each}:${port};`).join(' ')
    return `server { ${listen} default_type text/plain; root ${directory}; }`
  })
  if (!running) throw new Error('there is nothing to proxy to without nginx')
  return { address, ...running }
}

/** The constant of RFC 6455, section 1.3. */
const websocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** A text frame with one letter, as servers send it. */
const frame = Buffer.from([0x81, 1, 0x78])

/** An application that agrees to every WebSocket and answers what comes with a frame. */
export async function startWebSocketBackend(
  ground: Pick<Ground, 'stops'>,
  address: string,
): Promise<Place> {
  const server = createServer()
  const open = new Set<Duplex>()
  server.on('upgrade', ({ headers }, socket: Duplex) => {
    const key = `${headers['sec-websocket-key'] ?? ''}${websocketGuid}`
    const accept = createHash('sha1').update(key).digest('base64')
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
    open.add(socket)
    socket.on('error', () => {}).once('close', () => open.delete(socket))
    socket.write([...head, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'))
    socket.on('data', () => socket.write(frame))
  })
  server.listen({ host: address, port: 0, backlog: 1024 })
  await once(server, 'listening')
  ground.stops.push(async () => {
    for (const socket of open) socket.destroy()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { address, port: (server.address() as AddressInfo).port }
}
