import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TlsOptions } from 'node:tls'
import type { Clock, Logger } from '../../../core/index.ts'
import { parseHostPort, showHostPort } from '../host-port.ts'
import type { ServerMetrics } from '../server-metrics.ts'
import type { TunnelHub } from '../tunnel-hub.ts'
import { failureBody, failureStatus, failureText } from './dial-answer.ts'
import { quietStart } from './quiet-start.ts'

/** What the HTTP CONNECT front end is made of. */
export interface ConnectFrontEndParts {
  readonly hub: TunnelHub
  readonly metrics: ServerMetrics
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

const statusTexts: Readonly<Record<number, string>> = {
  400: 'Bad Request',
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
    const server = createServer(this.#options())
    server.on('connection', (socket: Socket) => this.#accepted(socket))
    return this.#attach(server)
  }

  /** A server for TCP. */
  secureServer(tls: TlsOptions): Server & { setSecureContext(options: TlsOptions): void } {
    const options = {
      ...this.#options(),
      ...tls,
      ALPNProtocols: ['http/1.1'],
      // Not in the types of https, but it goes on to the TLS sockets: ends of direction are ours to order.
      allowHalfOpen: true,
    }
    const server = createSecureServer(options)
    server.on('secureConnection', (socket) => this.#accepted(socket))
    server.on('tlsClientError', (err) => this.#parts.log.debug({ err }, 'tls handshake failed'))
    this.#attach(server)
    return server
  }

  /** Cuts every connection. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #options(): ServerOptions {
    const { headerTimeoutMs = defaultHeaderTimeoutMs } = this.#parts
    return {
      headersTimeout: headerTimeoutMs,
      requestTimeout: headerTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, Math.ceil(headerTimeoutMs / 4)),
      keepAliveTimeout: 1_000,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    }
  }

  #attach(server: Server): Server {
    server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#connect(request, socket, head).catch((err: unknown) => {
        this.#parts.log.error({ err }, 'serving CONNECT failed')
        socket.destroy()
      })
    })
    server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
      response.writeHead(405, {
        'content-type': 'text/plain',
        connection: 'close',
        allow: 'CONNECT',
      })
      response.end('this proxy only supports CONNECT passthrough\n')
    })
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      if (!socket.writable || error.code === 'ECONNRESET') socket.destroy()
      else if (error.code === 'HPE_HEADER_OVERFLOW') answer(socket, 431, 'the request is too large')
      else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy()
      else answer(socket, 400, 'this is not an HTTP request')
    })
    return server
  }

  #accepted(socket: Duplex): void {
    this.#sockets.add(socket)
    // Whatever happens to it, nobody may be surprised by an error without a listener.
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #connect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { hub, log } = this.#parts
    // The request-target counts, never the Host header: kube-apiserver sends a dummy there.
    const target = parseHostPort(request.url ?? '')
    if (!target) {
      answer(socket, 400, 'the request-target must be HOST:PORT')
      return
    }
    const address = showHostPort(target)
    if (head.length > 0) socket.unshift(head)
    const waiting = watchForEnd(socket)
    try {
      const far = await hub.open(address, waiting.gone)
      waiting.stop()
      if (socket.destroyed) {
        far.close()
        return
      }
      this.#established(socket)
      await hub.carry(quietStart(socket, quietMs), far, { address })
    } catch (error) {
      waiting.stop()
      log.info({ address, why: failureText(error) }, 'dial failed')
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
