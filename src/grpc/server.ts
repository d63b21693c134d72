import { createServer, type Server, type Socket } from 'node:net'
import {
  createServer as createTlsServer,
  type TLSSocket,
  type TlsOptions,
  type Server as TlsServer,
} from 'node:tls'
import { excerpt, type Logger, quotePeer, systemClock } from '../core/index.ts'
import { errorCode, type HeaderField, Http2Connection, type Http2Stream } from './http2/index.ts'
import {
  fieldsOf,
  type GrpcFailure,
  grpcContentType,
  grpcStatus,
  headerOf,
  type Metadata,
  metadataOf,
  trailersOf,
} from './status.ts'

/** The request of a call whose headers have arrived. */
export interface CallRequest {
  /** Names in lower case, values in the order they came. */
  readonly metadata: Metadata
  /** For the peer's certificate and address. */
  readonly socket: Socket | TLSSocket
  /** Aborts when the peer disconnects or authentication takes too long. */
  readonly signal: AbortSignal
}

/** Metadata for the response, or the status with which the call is refused (2 is what a plain Go error becomes). */
export type Authentication = { readonly metadata: Readonly<Record<string, string>> } | GrpcFailure

/** A streaming method. */
export interface GrpcMethod {
  /** Decides before anything is sent. If it throws, the call is refused with status 2 and without the cause. */
  authenticate(request: CallRequest): Promise<Authentication>
  /** Serves an authenticated call; has to call `respond` and to start the stream in the same tick. */
  serve(call: ServerCall, request: CallRequest, metadata: Readonly<Record<string, string>>): void
}

/** A call that a server serves; its messages are up to the method. */
export class ServerCall {
  readonly connection: Http2Connection
  readonly stream: Http2Stream

  constructor(connection: Http2Connection, stream: Http2Stream) {
    this.connection = connection
    this.stream = stream
  }

  respond(metadata: Readonly<Record<string, string>>): void {
    this.stream.sendHeaders([
      [':status', '200'],
      ['content-type', grpcContentType],
      ...fieldsOf(metadata),
    ])
  }

  /** Ends the call once everything written has been sent. */
  end(status: number, message = ''): void {
    this.stream.end(trailersOf(status, message))
  }

  /** Sends the status and reads no more. */
  abort(status: number, message = ''): void {
    this.end(status, message)
    this.stream.reset(errorCode.NO_ERROR)
  }
}

/** Responds with headers and trailers in one. */
function refuse(stream: Http2Stream, failure: GrpcFailure, httpStatus = 200): void {
  stream.refuse([
    [':status', String(httpStatus)],
    ['content-type', grpcContentType],
    ...trailersOf(failure.grpcStatus, failure.message),
  ])
}

/** Options of a gRPC server. */
export interface GrpcServerOptions {
  /** By path, for example `/AgentService/Connect`. */
  readonly methods: Readonly<Record<string, GrpcMethod>>
  /** Streams per connection; default 1000. */
  readonly maxStreams?: number
  /** Streams that a connection may open in 10 s, however they end; default: no limit. */
  readonly maxNewStreams?: number
  /** Longest DATA frame; default 16 KiB. */
  readonly maxFrameBytes?: number
  /** How long a connection may take for TLS and for its first authenticated call; default 10 s. */
  readonly handshakeTimeoutMs?: number
  readonly log: Logger
}

/** A gRPC server without a port of its own. */
export interface GrpcServer {
  /** A server to listen with; `setSecureContext` changes its certificates. */
  secureServer(tls: TlsOptions): TlsServer
  /** A server for a UNIX socket. */
  cleartextServer(): Server
  /** Destroys all connections; the caller closes the listening servers. */
  close(): void
}

const defaultHandshakeTimeoutMs = 10_000
/** How long a connection may stay without a stream once it has had one. */
const idleConnectionMs = 60_000
const defaultMaxStreams = 1_000

class Http2GrpcServer implements GrpcServer {
  readonly #options: GrpcServerOptions
  readonly #methods: ReadonlyMap<string, GrpcMethod>
  readonly #handshakeTimeoutMs: number
  readonly #connections = new Set<Http2Connection>()

  constructor(options: GrpcServerOptions) {
    this.#options = options
    this.#methods = new Map(Object.entries(options.methods))
    this.#handshakeTimeoutMs = options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs
  }

  secureServer(tls: TlsOptions): TlsServer {
    const server = createTlsServer({
      handshakeTimeout: this.#handshakeTimeoutMs,
      ...tls,
      ALPNProtocols: ['h2'],
    })
    server.on('secureConnection', (socket) => this.#accept(socket))
    server.on('tlsClientError', (error) =>
      this.#options.log.debug({ err: error }, 'TLS handshake failed'),
    )
    return server
  }

  cleartextServer(): Server {
    return createServer((socket) => this.#accept(socket))
  }

  close(): void {
    for (const connection of this.#connections) connection.destroy()
  }

  #accept(socket: Socket): void {
    socket.setNoDelay(true)
    const expire = (): void => connection.close()
    let isAuthenticated = false
    // Further requests of an unauthenticated peer do not extend its time.
    let timer = setTimeout(expire, this.#handshakeTimeoutMs).unref()
    const authenticated = (): void => {
      isAuthenticated = true
      clearTimeout(timer)
    }
    const { maxStreams = defaultMaxStreams, maxNewStreams, maxFrameBytes } = this.#options
    const connection = new Http2Connection(
      socket,
      {
        side: 'server',
        maxStreams,
        maxNewStreams,
        clock: systemClock,
        ...(maxFrameBytes !== undefined && { maxFrameBytes }),
      },
      {
        request: (stream, fields) => {
          if (isAuthenticated) clearTimeout(timer)
          void this.#handle(new ServerCall(connection, stream), fields, authenticated)
        },
        idle: () => {
          if (isAuthenticated) timer = setTimeout(expire, idleConnectionMs).unref()
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

  async #handle(
    call: ServerCall,
    fields: readonly HeaderField[],
    authenticated: () => void,
  ): Promise<void> {
    const { stream, connection } = call
    const method = this.#methodOf(stream, fields)
    if (!method) return
    const abort = new AbortController()
    stream.observe({ headers: () => {}, closed: () => abort.abort() })
    const timer = setTimeout(() => abort.abort(), this.#handshakeTimeoutMs)
    const request: CallRequest = {
      metadata: metadataOf(fields),
      socket: connection.socket,
      signal: abort.signal,
    }
    const result = await this.#authenticate(method, request)
    clearTimeout(timer)
    if (stream.isClosed) return
    if ('grpcStatus' in result) {
      refuse(stream, result)
      return
    }
    authenticated()
    method.serve(call, request, result.metadata)
  }

  async #authenticate(method: GrpcMethod, request: CallRequest): Promise<Authentication> {
    try {
      return await method.authenticate(request)
    } catch (error) {
      this.#options.log.error({ err: error }, 'authentication of a peer failed')
      return { grpcStatus: grpcStatus.unknown, message: 'authentication failed' }
    }
  }

  /** The method that is called; refuses the stream if there is none, with the messages of grpc-go. */
  #methodOf(stream: Http2Stream, fields: readonly HeaderField[]): GrpcMethod | undefined {
    const contentType = headerOf(fields, 'content-type') ?? ''
    if (!/^application\/grpc(?:$|[+;])/.test(contentType)) {
      const message = `invalid gRPC request content-type ${quotePeer(contentType)}`
      refuse(stream, { grpcStatus: grpcStatus.internal, message }, 415)
      return undefined
    }
    const httpMethod = headerOf(fields, ':method')
    if (httpMethod !== 'POST') {
      const message = `Received a HEADERS frame with :method ${quotePeer(httpMethod)} which should be POST`
      refuse(stream, { grpcStatus: grpcStatus.internal, message }, 405)
      return undefined
    }
    const path = headerOf(fields, ':path') ?? ''
    const method = this.#methods.get(path)
    if (!method)
      refuse(stream, { grpcStatus: grpcStatus.unimplemented, message: this.#unknown(path) })
    return method
  }

  #unknown(path: string): string {
    const [, service = '', name = ''] = path.split('/')
    return [...this.#methods.keys()].some((known) => known.startsWith(`/${service}/`))
      ? `unknown method ${excerpt(name)} for service ${excerpt(service)}`
      : `unknown service ${excerpt(service)}`
  }
}

/** Creates a gRPC server; listen with one of its servers. */
export const createGrpcServer = (options: GrpcServerOptions): GrpcServer =>
  new Http2GrpcServer(options)
