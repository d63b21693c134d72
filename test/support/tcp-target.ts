import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'

/** Something to dial through a tunnel. */
export interface TcpTarget {
  readonly address: string
  readonly port: number
  /** Connections that are open now. */
  readonly open: ReadonlySet<Socket>
  /** The next connection that is made to it. */
  accepted(): Promise<Socket>
  close(): Promise<void>
}

async function listen(server: Server, host: string): Promise<TcpTarget> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => {}).once('close', () => open.delete(socket))
  })
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    address: `${host}:${port}`,
    port,
    open,
    accepted: async () => ((await once(server, 'connection')) as [Socket])[0],
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Hands every connection to `serve`; half-open connections are its business. */
export const tcpTarget = (
  serve: (socket: Socket) => void,
  host = '127.0.0.1',
): Promise<TcpTarget> => listen(createTcpServer({ allowHalfOpen: true }, serve), host)

/** Sends back what it gets, and ends when its client has ended. */
export const echoTarget = (host?: string): Promise<TcpTarget> =>
  tcpTarget((socket) => socket.pipe(socket), host)

/** A plain web server. */
export const httpTarget = (answer: RequestListener, host = '127.0.0.1'): Promise<TcpTarget> =>
  listen(createServer({ keepAliveTimeout: 60_000 }, answer), host)
