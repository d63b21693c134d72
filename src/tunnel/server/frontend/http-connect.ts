import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  createServer as createSecureServer,
  type Server as SecureServer,
  type TlsOptions,
} from 'node:tls'
import { type Clock, excerpt, type Logger } from '../../../core/index.ts'
import { plainAddress } from '../../addresses/source.ts'
import { parseHostPort, showHostPort } from '../../addresses.ts'
import { ClientDistrusted } from '../agent-registry.ts'
import type { TunnelHub } from '../hub.ts'
import type { ServerMetrics } from '../metrics.ts'
import { failureBody, failureStatus, failureText } from './grpc.ts'
import { quietStart } from './quiet-start.ts'

/** What the first bytes of a client of the HTTP CONNECT front end are. */
export type ConnectHead =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'connect'; readonly target: string; readonly length: number }
  | { readonly kind: 'fault'; readonly status: 400 | 405 | 431; readonly text: string }

/** As much as node:http takes. */
const maxHeadBytes = 16 * 1024

const headEnd = Buffer.from('\r\n\r\n')
const requestLine = /^([A-Z]+) ([!-~]+) HTTP\/1\.[01]$/
const headerLine = /^[!#$%&'*+.^_`|~\w-]+:[\t -~\x80-\xff]*$/

const fault = (status: 400 | 405 | 431, text: string): ConnectHead => ({
  kind: 'fault',
  status,
  text,
})
const notHttp = fault(400, 'this is not an HTTP request')
const tooLarge = fault(431, 'the request is too large')
const incomplete: ConnectHead = { kind: 'incomplete' }

/** Whoever speaks TLS or ends lines in another way waits for an answer and would never send the end of a head. */
function neverEnds(bytes: Buffer): boolean {
  const first = bytes[0] ?? 0
  const newline = bytes.indexOf('\n')
  return first < 0x41 || first > 0x5a || (newline >= 0 && bytes[newline - 1] !== 0x0d)
}

/**
 * Reads the head of a CONNECT request. Its headers mean nothing to a tunnel and are only checked to be headers.
 * kube-apiserver opens a connection for each request, so a parser, a request and a response of node:http
 * for each would be made to be thrown away.
 */
export function readConnectHead(bytes: Buffer): ConnectHead {
  if (bytes.length === 0) return incomplete
  if (neverEnds(bytes)) return notHttp
  const end = bytes.indexOf(headEnd)
  if (end > maxHeadBytes) return tooLarge
  if (end < 0) return bytes.length > maxHeadBytes ? tooLarge : incomplete
  const [line = '', ...headers] = bytes.toString('latin1', 0, end).split('\r\n')
  const request = requestLine.exec(line)
  if (!request || !headers.every((header) => headerLine.test(header))) return notHttp
  const [, method, target = ''] = request
  if (method !== 'CONNECT') return fault(405, 'this proxy only supports CONNECT passthrough')
  return { kind: 'connect', target, length: end + headEnd.length }
}

/** What the HTTP CONNECT front end is made of. */
export interface ConnectFrontEndParts {
  readonly hub: TunnelHub
  readonly metrics: ServerMetrics
  /** Throws ClientDistrusted for a connection that must not be served. */
  readonly admit?: (socket: Socket) => void
  readonly clock: Clock
  readonly log: Logger
  /** How long a client may take for its request line and headers; 60 s as upstream. */
  readonly headerTimeoutMs?: number
}

const defaultHeaderTimeoutMs = 60_000
/** How long a target that speaks first is held back behind the answer to CONNECT. */
const quietMs = 100
/** How long a refused client may take to read why. */
const lingerMs = 2_000

/** Ends of direction are ours to order. */
const socketOptions = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
}

const statusTexts: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  405: 'Method Not Allowed',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/** The front end that speaks HTTP/1.1 CONNECT, on a unix socket or with TLS. */
export class ConnectFrontEnd {
  readonly #parts: ConnectFrontEndParts
  readonly #sockets = new Set<Duplex>()

  constructor(parts: ConnectFrontEndParts) {
    this.#parts = parts
  }

  /** Connections that are open, before and after their dial. */
  get connectionCount(): number {
    return this.#sockets.size
  }

  /** A server for a unix socket. */
  cleartextServer(): Server {
    return createServer(socketOptions, (socket) => this.#accepted(socket))
  }

  /** A server for TCP. */
  secureServer(tls: TlsOptions): SecureServer {
    const options = { ...socketOptions, ...tls, ALPNProtocols: ['http/1.1'] }
    const server = createSecureServer(options, (socket) => this.#accepted(socket))
    server.on('tlsClientError', (err) => this.#parts.log.debug({ err }, 'tls handshake failed'))
    return server
  }

  /** Cuts every connection. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #accepted(socket: Socket): void {
    const { headerTimeoutMs = defaultHeaderTimeoutMs, log } = this.#parts
    this.#sockets.add(socket)
    // Whatever happens to it, nobody may be surprised by an error without a listener.
    socket.on('error', () => {})
    const tooSlow = setTimeout(() => socket.destroy(), headerTimeoutMs)
    socket.once('close', () => {
      clearTimeout(tooSlow)
      this.#sockets.delete(socket)
    })
    const refusal = this.#refusalOf(socket)
    readHead(socket, (head) => {
      clearTimeout(tooSlow)
      if (refusal !== undefined) answer(socket, 403, refusal)
      else if (head.kind === 'fault') answer(socket, head.status, head.text)
      else
        this.#connect(head.target, socket).catch((err: unknown) => {
          log.error({ err }, 'serving CONNECT failed')
          socket.destroy()
        })
    })
  }

  /** Why a client is not served, in the words for it. */
  #refusalOf(socket: Socket): string | undefined {
    const { admit, log } = this.#parts
    try {
      admit?.(socket)
      return undefined
    } catch (error) {
      if (!(error instanceof ClientDistrusted)) throw error
      const from = plainAddress(socket.remoteAddress)
      log.warn({ from, why: error.message }, 'client refused')
      return 'the client could not be authenticated'
    }
  }

  async #connect(requestTarget: string, socket: Duplex): Promise<void> {
    const { hub, log } = this.#parts
    // The request-target counts, never the Host header: kube-apiserver sends a dummy there.
    const target = parseHostPort(requestTarget)
    if (!target) {
      answer(socket, 400, 'the request-target must be HOST:PORT')
      return
    }
    const address = showHostPort(target)
    const waiting = watchForEnd(socket)
    try {
      const far = await hub.open(address, waiting.gone)
      waiting.stop()
      if (socket.destroyed) {
        far.close()
        return
      }
      this.#established(socket)
      await hub.carry(quietStart(socket, quietMs), far, { from: 'client', address })
    } catch (error) {
      waiting.stop()
      log.info({ address: excerpt(address), why: excerpt(failureText(error)) }, 'dial failed')
      answer(socket, failureStatus(error), failureBody(error))
    }
  }

  #established(socket: Duplex): void {
    const { clock, metrics } = this.#parts
    const begun = clock.monotonic()
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n', () =>
      metrics.frontendWriteDuration.observe((clock.monotonic() - begun) / 1_000),
    )
  }
}

/** Reads until the head of the request is whole or wrong; bytes after it stay unread. */
function readHead(
  socket: Duplex,
  done: (head: Exclude<ConnectHead, { kind: 'incomplete' }>) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0)
  const read = (): void => {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) {
      // The end, or a false alarm.
      if (socket.readableEnded) socket.destroy()
      return
    }
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
    const head = readConnectHead(bytes)
    if (head.kind === 'incomplete') return
    socket.off('readable', read)
    socket.off('end', gone)
    if (head.kind === 'connect' && head.length < bytes.length)
      socket.unshift(bytes.subarray(head.length))
    done(head)
  }
  const gone = (): void => {
    socket.destroy()
  }
  socket.on('readable', read)
  socket.once('end', gone)
}

/** Aborts when the client goes away before it is answered; what it sends meanwhile waits in a buffer of fixed size. */
function watchForEnd(socket: Duplex): { readonly gone: AbortSignal; stop(): void } {
  const gone = new AbortController()
  const giveUp = (): void => gone.abort()
  const ended = (): void => {
    if (socket.readableLength === 0) giveUp()
  }
  socket.once('close', giveUp)
  socket.on('readable', ended)
  const stop = (): void => {
    socket.off('close', giveUp)
    socket.off('readable', ended)
  }
  return { gone: gone.signal, stop }
}

function answer(socket: Duplex, status: number, text: string): void {
  if (socket.destroyed || socket.writableEnded) {
    socket.destroy()
    return
  }
  const body = Buffer.from(`${text}\n`)
  const giveUp = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(giveUp))
  socket.end(
    Buffer.concat([
      Buffer.from(
        `HTTP/1.1 ${status} ${statusTexts[status] ?? ''}\r\n` +
          'Content-Type: text/plain; charset=utf-8\r\n' +
          `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      ),
      body,
    ]),
    // Bytes that nobody has read would make the kernel reset the connection, and the answer with it.
    () => socket.resume(),
  )
  socket.once('end', () => socket.destroy())
}
