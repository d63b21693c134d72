import { createServer, type Server, type Socket } from 'node:net'
import {
  createServer as createTlsServer,
  type TlsOptions,
  type Server as TlsServer,
} from 'node:tls'
import { systemClock } from '../../core/index.ts'
import { type HeaderField, Http2Connection, type Http2Stream } from '../../grpc/http2/index.ts'
import { grpcStatus, metadataOf } from '../../grpc/index.ts'
import { linkOfStream } from '../link/grpc-link.ts'
import {
  agreed,
  type BufferBudget,
  capabilityHeader,
  formatCapabilities,
  type Link,
  parseCapabilities,
} from '../link/index.ts'
import type { Admission, LinkRequest, LinkSettings, StreamPath } from './options.ts'
import { requestFault } from './request-fault.ts'
import { refuseStream, ServerStream } from './server-stream.ts'

/** What a gRPC service needs to know. */
export interface GrpcServiceOptions extends Omit<LinkSettings, 'budget'> {
  readonly path: StreamPath
  /** Streams that one connection may have; front ends need one for each of theirs, 1000 without it. */
  readonly maxStreams?: number
  /** Streams that one connection may open in 10 s, however they end. */
  readonly maxNewStreams?: number
  /** Decides before anything is answered; a throw refuses with status 2 and says nothing of the cause. */
  authenticate(request: LinkRequest): Promise<Admission>
  /** What the links of this peer share. */
  budgetOf?(request: LinkRequest): BufferBudget
  /** Takes an open link; has to call `start` at once. */
  onLink(link: Link, request: LinkRequest): void
}

/** One of Konnectivity's two streams, served. */
export interface GrpcService {
  /** A server to listen with; `setSecureContext` changes its certificates. */
  secureServer(tls: TlsOptions): TlsServer
  /** A server for a UNIX socket. */
  cleartextServer(): Server
  /** Open links. */
  readonly linkCount: number
  /** Cuts every connection; listening servers are closed by whoever listens. */
  close(): void
}

const defaultHandshakeTimeoutMs = 10_000
/** How long a connection may stay without a stream once it has had one. */
const idleConnectionMs = 60_000
const defaultMaxStreams = 1_000

class GrpcStreams implements GrpcService {
  readonly #options: GrpcServiceOptions
  readonly #connections = new Set<Http2Connection>()
  readonly #links = new Set<Link>()

  constructor(options: GrpcServiceOptions) {
    this.#options = options
  }

  get linkCount(): number {
    return this.#links.size
  }

  get #handshakeTimeoutMs(): number {
    return this.#options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs
  }

  secureServer(tls: TlsOptions): TlsServer {
    const server = createTlsServer({
      handshakeTimeout: this.#handshakeTimeoutMs,
      ...tls,
      ALPNProtocols: ['h2'],
    })
    server.on('secureConnection', (socket) => this.#welcome(socket))
    server.on('tlsClientError', (error) =>
      this.#options.log.debug({ err: error }, 'TLS handshake failed'),
    )
    return server
  }

  cleartextServer(): Server {
    return createServer((socket) => this.#welcome(socket))
  }

  close(): void {
    for (const connection of this.#connections) connection.destroy()
  }

  #welcome(socket: Socket): void {
    socket.setNoDelay(true)
    const cut = (): void => connection.close()
    let isAdmitted = false
    // Whoever has not been let in by then does not win time by asking again.
    let timer = setTimeout(cut, this.#handshakeTimeoutMs).unref()
    const admitted = (): void => {
      isAdmitted = true
      clearTimeout(timer)
    }
    const { maxStreams = defaultMaxStreams, maxNewStreams } = this.#options
    const connection = new Http2Connection(
      socket,
      { side: 'server', maxStreams, maxNewStreams, clock: systemClock },
      {
        request: (stream, fields) => {
          if (isAdmitted) clearTimeout(timer)
          void this.#answer(stream, connection, fields, admitted)
        },
        idle: () => {
          if (isAdmitted) timer = setTimeout(cut, idleConnectionMs).unref()
        },
        closed: (error) => {
          clearTimeout(timer)
          this.#connections.delete(connection)
          if (error) this.#options.log.debug({ err: error }, 'connection failed')
        },
      },
    )
    this.#connections.add(connection)
  }

  async #answer(
    stream: Http2Stream,
    connection: Http2Connection,
    fields: readonly HeaderField[],
    admitted: () => void,
  ): Promise<void> {
    const fault = requestFault(fields, this.#options.path)
    if (fault) {
      refuseStream(stream, fault)
      return
    }
    const gone = new AbortController()
    stream.observe({ headers: () => {}, closed: () => gone.abort() })
    const late = setTimeout(() => gone.abort(), this.#handshakeTimeoutMs)
    const request: LinkRequest = {
      metadata: metadataOf(fields),
      socket: connection.socket,
      signal: gone.signal,
    }
    const admission = await this.#admit(request)
    clearTimeout(late)
    if (stream.isClosed) return
    if ('grpcStatus' in admission) {
      refuseStream(stream, admission)
      return
    }
    admitted()
    this.#open(stream, connection, request, admission.metadata)
  }

  async #admit(request: LinkRequest): Promise<Admission> {
    try {
      return await this.#options.authenticate(request)
    } catch (error) {
      this.#options.log.error({ err: error }, 'a peer could not be authenticated')
      return { grpcStatus: grpcStatus.unknown, message: 'authentication failed' }
    }
  }

  #open(
    stream: Http2Stream,
    connection: Http2Connection,
    request: LinkRequest,
    metadata: Readonly<Record<string, string>>,
  ): void {
    const offered = parseCapabilities(request.metadata[capabilityHeader])
    const capabilities = agreed(this.#options.capabilities, offered)
    const end = new ServerStream(stream, connection)
    end.respond({
      ...metadata,
      ...(offered.size > 0 && { [capabilityHeader]: formatCapabilities(capabilities) }),
    })
    const side = this.#options.path === '/ProxyService/Proxy' ? 'gateway' : 'server'
    const budget = this.#options.budgetOf?.(request)
    const link = linkOfStream(
      { stream, connection, end, side, capabilities, metadata: request.metadata },
      { ...this.#options, ...(budget && { budget }) },
    )
    this.#links.add(link)
    void link.ended.then(() => this.#links.delete(link))
    this.#options.onLink(link, request)
  }
}

/** Serves the streams of one path; a ProxyService stream is a link with one channel, which the peer dials. */
export const createGrpcService = (options: GrpcServiceOptions): GrpcService =>
  new GrpcStreams(options)
