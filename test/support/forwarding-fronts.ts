import { once } from 'node:events'
import { createServer, type Server as HttpServer, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { startGuardLab } from '../../src/addon/guard/guard-lab.suite.ts'
import { ProxyLab } from '../../src/local-proxy/proxy-lab.suite.ts'
import { outwardAddress, ServiceProxyLab } from './service-proxy-lab.ts'

/** A request as what is behind a front has seen it. */
interface ForwardedRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
}

/** One of our servers that forward HTTP, and what is behind it. */
export interface Front {
  readonly name: string
  /** Where requests are forwarded from. */
  readonly path: string
  /** Header lines by which a request is let through. */
  readonly lines: readonly string[]
  readonly seen: ForwardedRequest[]
  /** Connections that were made to what is behind it. */
  readonly connections: () => number
  /** A connection to the front on which a test writes what it likes. */
  connect(): Promise<Duplex>
  close(): Promise<void>
}

/** What a test may change in the fronts. */
export interface FrontOptions {
  readonly allowedRequestHeaders?: readonly string[]
}

/** The names of the fronts; a new one that forwards needs a row here. */
export const frontNames = ['guard', 'service proxy', 'local proxy'] as const
type FrontName = (typeof frontNames)[number]

const openers: Readonly<Record<FrontName, (options: FrontOptions) => Promise<Front>>> = {
  guard: guardFront,
  'service proxy': serviceProxyFront,
  'local proxy': localProxyFront,
}

export const openFront = (name: FrontName, options: FrontOptions = {}): Promise<Front> =>
  openers[name](options)

async function guardFront({ allowedRequestHeaders = [] }: FrontOptions): Promise<Front> {
  const lab = await startGuardLab({ allowedRequestHeaders })
  lab.addon.onUpgrade = (request, socket) => {
    lab.addon.seen.push(seenOf(request, ''))
    switchProtocols(socket)
  }
  return {
    name: 'guard',
    path: '/app',
    lines: ['Host: a', `Authorization: Bearer ${lab.token()}`],
    seen: lab.addon.seen,
    connections: () => lab.addon.connections,
    connect: () => plainConnection(lab.port),
    close: () => lab.stop(),
  }
}

async function serviceProxyFront({ allowedRequestHeaders = [] }: FrontOptions): Promise<Front> {
  const lab = await ServiceProxyLab.open()
  const { server, seen, connections } = recordingServer()
  server.listen(0, outwardAddress)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const annotations = {
    'sallyport.dev/allowed-request-headers': allowedRequestHeaders.join(', '),
  }
  const path = await lab.addon(
    'app',
    { port },
    {
      ...(allowedRequestHeaders.length > 0 && { annotations }),
    },
  )
  const admin = await lab.server.admin()
  return {
    name: 'service proxy',
    path: `${path}/app`,
    lines: ['Host: localhost'],
    seen,
    connections,
    connect: () => admin.socket({ ALPNProtocols: ['http/1.1'] }),
    close: async () => {
      await lab.close()
      server.closeAllConnections()
      server.close()
    },
  }
}

async function localProxyFront({ allowedRequestHeaders = [] }: FrontOptions): Promise<Front> {
  const lab = await ProxyLab.open()
  const proxy = await lab.proxy({ allowedRequestHeaders })
  return {
    name: 'local proxy',
    path: '/api/v1/namespaces/default/services/app:80/proxy/app',
    lines: ['Host: localhost'],
    // Its upstream sends a token of its own, and asks nothing else.
    seen: lab.api.seen as unknown as ForwardedRequest[],
    connections: () => lab.api.connections,
    connect: () => plainConnection(proxy.port),
    close: () => lab.close(),
  }
}

async function plainConnection(port: number): Promise<Duplex> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

function recordingServer(): {
  readonly server: HttpServer
  readonly seen: ForwardedRequest[]
  readonly connections: () => number
} {
  const seen: ForwardedRequest[] = []
  let count = 0
  const server = createServer((request, response) => {
    buffer(request).then(
      (body) => {
        seen.push(seenOf(request, String(body)))
        response.end('ok')
      },
      () => response.destroy(),
    )
  })
  server.on('connection', () => {
    count++
  })
  server.on('upgrade', (request, socket) => {
    seen.push(seenOf(request, ''))
    switchProtocols(socket)
  })
  return { server, seen, connections: () => count }
}

function seenOf(request: IncomingMessage, body: string): ForwardedRequest {
  const { method = '', url = '', rawHeaders, rawTrailers: trailers } = request
  return { method, url, rawHeaders, body, trailers }
}

export function switchProtocols(socket: Duplex): void {
  socket.on('error', () => {})
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  )
}

/** Sends bytes and reads until a whole head has come and the front closes, or `enough` has come. */
export async function exchange(
  front: Front,
  bytes: string,
  enough: (text: string) => boolean,
): Promise<string> {
  const socket = await front.connect()
  try {
    let text = ''
    const read = new Promise<void>((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1')
        if (enough(text)) resolve()
      })
      socket.once('close', () => resolve())
      socket.once('end', () => resolve())
    })
    socket.write(bytes, 'latin1')
    await read
    return text
  } finally {
    socket.destroy()
  }
}

/** The status of the first response. */
export const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)
