import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Secret, silentLogger, systemClock } from '../core/index.ts'
import { nodePluginHost } from '../credentials/exec/index.ts'
import { labAuthority, labMaterial } from '../http/tls-lab.suite.ts'
import { FakeApiServer } from './fake-api-server.suite.ts'
import { LocalProxy, type LocalProxyOptions } from './local-proxy.ts'
import { filterDefaults } from './options/index.ts'
import { transportFromKubeconfig } from './transport.ts'

/** An answer as it came over the socket. */
export interface RawAnswer {
  readonly status: number
  /** Names in lower case; values of one name joined by a line break. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type LabOptions = Partial<LocalProxyOptions> & { readonly appendServerPath?: boolean }

/** A fake API server with a token's user, and proxies before it. */
export class ProxyLab {
  readonly api: FakeApiServer
  readonly server: string
  readonly caPem: string
  readonly #proxies: LocalProxy[] = []
  readonly #sockets: Socket[] = []

  constructor(api: FakeApiServer, server: string, caPem: string) {
    this.api = api
    this.server = server
    this.caPem = caPem
  }

  static async open(): Promise<ProxyLab> {
    const ca = await labAuthority()
    const api = new FakeApiServer(await labMaterial(ca))
    return new ProxyLab(api, await api.listen(), ca.bundlePem)
  }

  /** Starts a proxy on a free port, with kubectl's defaults. */
  async proxy(options: LabOptions = {}, serverPath = ''): Promise<LabProxy> {
    return this.#start(new LocalProxy(await this.#options(options, serverPath)))
  }

  /** Starts a proxy that lets every request through. */
  async unfiltered(): Promise<LabProxy> {
    const { filter: _, ...options } = await this.#options({})
    return this.#start(new LocalProxy(options))
  }

  async #start(proxy: LocalProxy): Promise<LabProxy> {
    this.#proxies.push(proxy)
    await proxy.start()
    return new LabProxy(proxy, this.#sockets)
  }

  async #options(
    { appendServerPath = false, ...options }: LabOptions,
    serverPath = '',
  ): Promise<LocalProxyOptions> {
    const transport = await transportFromKubeconfig({
      context: {
        contextName: 'lab',
        clusterName: 'lab',
        userName: 'jane',
        namespace: 'default',
        cluster: { server: this.server + serverPath, certificateAuthorityData: this.caPem },
        user: { token: new Secret('janes-token') },
      },
      appendServerPath,
      plugins: nodePluginHost(),
      env: {},
      log: silentLogger,
    })
    return {
      listen: { address: '127.0.0.1', port: 0 },
      transport,
      namespace: 'default',
      apiPrefix: '/',
      filter: filterDefaults,
      keepAliveMs: 0,
      clock: systemClock,
      log: silentLogger,
      ...options,
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.splice(0)) socket.destroy()
    for (const proxy of this.#proxies.splice(0)) await proxy.stop(AbortSignal.abort())
    this.api.close()
  }
}

/** A running proxy, asked over raw sockets. */
export class LabProxy {
  readonly proxy: LocalProxy
  readonly #sockets: Socket[]

  constructor(proxy: LocalProxy, sockets: Socket[]) {
    this.proxy = proxy
    this.#sockets = sockets
  }

  get port(): number {
    return Number(this.proxy.address.split(':').at(-1))
  }

  async socket(): Promise<Socket> {
    const socket = connect(this.port, '127.0.0.1')
    this.#sockets.push(socket)
    await once(socket, 'connect')
    return socket.on('error', () => {})
  }

  /** Sends these very bytes and reads until the proxy closes the connection. */
  async raw(text: string): Promise<RawAnswer> {
    const socket = await this.socket()
    socket.write(text, 'latin1')
    return parseAnswer(await textUntilClose(socket))
  }

  /** A request with these headers; the host is `localhost` unless one is given. */
  async ask(path: string, headers: readonly string[] = [], method = 'GET'): Promise<RawAnswer> {
    const hasHost = headers.some((line) => /^host:/i.test(line))
    const host = hasHost ? [] : [`Host: localhost:${this.port}`]
    const lines = [`${method} ${path} HTTP/1.1`, ...host, ...headers, 'Connection: close']
    return this.raw(`${lines.join('\r\n')}\r\n\r\n`)
  }

  /** A WebSocket handshake; the answer is what comes before the connection goes silent or closes. */
  async handshake(path: string, headers: readonly string[] = websocketHeaders): Promise<Handshake> {
    const socket = await this.socket()
    const hasHost = headers.some((line) => /^host:/i.test(line))
    const lines = [`GET ${path} HTTP/1.1`, ...(hasHost ? [] : ['Host: localhost']), ...headers]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    return { socket, head: await headOf(socket) }
  }
}

/** An upgrade that has been answered. */
export interface Handshake {
  readonly socket: Socket
  readonly head: RawAnswer
}

/** A complete WebSocket handshake. */
export const websocketHeaders: readonly string[] = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
]

async function textUntilClose(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('latin1')
  for await (const chunk of socket) text += String(chunk)
  return text
}

function textFrom(socket: Socket): string | null {
  const chunk: unknown = socket.read()
  return Buffer.isBuffer(chunk) ? chunk.toString('latin1') : null
}

/** The head of an answer on a connection that stays open; what follows it stays in the socket. */
async function headOf(socket: Socket): Promise<RawAnswer> {
  let text = ''
  while (!text.includes('\r\n\r\n')) {
    const chunk = textFrom(socket)
    if (chunk !== null) text += chunk
    else await Promise.race([once(socket, 'readable'), once(socket, 'close')])
    if (socket.destroyed) break
  }
  const end = text.indexOf('\r\n\r\n') + 4
  if (text.length > end) socket.unshift(Buffer.from(text.slice(end)))
  return parseAnswer(text.slice(0, end))
}

/** Waits until these bytes have come. */
export async function untilText(socket: Socket, wanted: string): Promise<string> {
  let text = ''
  while (!text.includes(wanted)) {
    const chunk = textFrom(socket)
    if (chunk !== null) text += chunk
    else await once(socket, 'readable')
  }
  return text
}

function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n')
  const [first = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}\n${value}`
  }
  const body = text.slice(end + 4)
  const chunked = headers['transfer-encoding'] === 'chunked'
  return { status: Number(first.split(' ')[1]), headers, body: chunked ? unchunk(body) : body }
}

function unchunk(text: string): string {
  let rest = text
  let body = ''
  for (;;) {
    const line = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, line), 16)
    if (!(size > 0)) return body
    body += rest.slice(line + 2, line + 2 + size)
    rest = rest.slice(line + 4 + size)
  }
}
