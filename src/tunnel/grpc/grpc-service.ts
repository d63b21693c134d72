import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Server } from 'node:net'
import type { TlsOptions, Server as TlsServer } from 'node:tls'
import {
  agreed,
  capabilityHeader,
  formatCapabilities,
  type Link,
  parseCapabilities,
} from '../link/index.ts'
import { LinkBroken } from './errors.ts'
import { encodeGrpcMessage, grpcStatus } from './grpc-status.ts'
import type { StreamEnd } from './http2-carrier.ts'
import {
  connectionWindowBytes,
  grpcContentType,
  http2Settings,
  maxSessionMemory,
} from './http2-settings.ts'
import { linkOfStream } from './link-of-stream.ts'
import type { Admission, LinkRequest, LinkSettings, StreamPath } from './options.ts'
import { metadataOf } from './raw-metadata.ts'

/** What a gRPC service needs to know. */
export interface GrpcServiceOptions extends LinkSettings {
  readonly path: StreamPath
  /** Decides before anything is answered; a throw refuses with status 2 and says nothing of the cause. */
  authenticate(request: LinkRequest): Promise<Admission>
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
/** How long a connection may stay without a stream. */
const idleConnectionMs = 60_000

/** Answers without a message: headers and trailers in one. */
function refuse(
  stream: ServerHttp2Stream,
  status: number,
  message: string,
  httpStatus = 200,
): void {
  if (stream.destroyed || stream.headersSent) return
  stream.respond(
    {
      ':status': httpStatus,
      'content-type': grpcContentType,
      'grpc-status': String(status),
      'grpc-message': encodeGrpcMessage(message),
    },
    { endStream: true },
  )
  stream.close(constants.NGHTTP2_NO_ERROR)
}

/** What is wrong with a request before anybody looks at who sent it, in grpc-go's words. */
function faultOf(
  headers: IncomingHttpHeaders,
  path: StreamPath,
): { httpStatus: number; status: number; message: string } | undefined {
  const contentType = headers['content-type'] ?? ''
  if (!/^application\/grpc(?:$|[+;])/.test(contentType))
    return {
      httpStatus: 415,
      status: grpcStatus.unknown,
      message: `invalid gRPC request content-type ${JSON.stringify(contentType)}`,
    }
  if (headers[':method'] !== 'POST')
    return {
      httpStatus: 405,
      status: grpcStatus.internal,
      message: `Received a HEADERS frame with :method ${JSON.stringify(headers[':method'])} which should be POST`,
    }
  const [, service = '', method = ''] = (headers[':path'] ?? '').split('/')
  if (headers[':path'] === path) return undefined
  const message = path.startsWith(`/${service}/`)
    ? `unknown method ${method} for service ${service}`
    : `unknown service ${service}`
  return { httpStatus: 200, status: grpcStatus.unimplemented, message }
}

/** Ends a stream with trailers, and tells how the client's part ended. */
function serverEnd(stream: ServerHttp2Stream): StreamEnd {
  let outcome: Error | undefined
  let isOrderly = false
  stream.once('end', () => {
    isOrderly = true
  })
  stream.session?.once('goaway', (code) => {
    isOrderly ||= code === constants.NGHTTP2_NO_ERROR
  })
  stream.once('wantTrailers', () => {
    stream.sendTrailers({
      'grpc-status': String(outcome ? grpcStatus.unknown : grpcStatus.ok),
      ...(outcome && { 'grpc-message': encodeGrpcMessage(outcome.message) }),
    })
    stream.close(constants.NGHTTP2_NO_ERROR)
  })
  return {
    finish: () => {
      isOrderly = true
      stream.end()
    },
    abort: (error) => {
      outcome = error
      if (stream.session?.destroyed === false && error instanceof LinkBroken)
        stream.session.destroy()
      else stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    },
    verdict: () => {
      const isCancelled =
        stream.rstCode === constants.NGHTTP2_CANCEL && stream.session?.destroyed === false
      if (isOrderly || isCancelled) return undefined
      return new LinkBroken('the connection of the other end was lost')
    },
  }
}

class GrpcStreams implements GrpcService {
  readonly #options: GrpcServiceOptions
  readonly #sessions = new Set<ServerHttp2Session>()
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
    const { handshakeTimeout = this.#handshakeTimeoutMs } = tls
    const server = createSecureServer({
      ...tls,
      handshakeTimeout,
      allowHTTP1: false,
      noDelay: true,
      settings: http2Settings,
      maxSessionMemory,
    })
    this.#serve(server)
    return server
  }

  cleartextServer(): Server {
    const server = createServer({ settings: http2Settings, maxSessionMemory })
    this.#serve(server)
    return server
  }

  close(): void {
    for (const session of this.#sessions) session.destroy()
  }

  #serve(server: Http2Server | Http2SecureServer): void {
    server.on('session', (session) => this.#welcome(session))
    server.on('sessionError', (error) =>
      this.#options.log.debug({ err: error }, 'connection failed'),
    )
    server.on(
      'stream',
      (
        ...[stream, headers, , rawHeaders]: [
          ServerHttp2Stream,
          IncomingHttpHeaders,
          number,
          unknown?,
        ]
      ) => {
        stream.on('error', (error) => this.#options.log.debug({ err: error }, 'stream failed'))
        const metadata = metadataOf(Array.isArray(rawHeaders) ? rawHeaders.map(String) : [])
        void this.#answer(stream, headers, metadata)
      },
    )
  }

  #welcome(session: ServerHttp2Session): void {
    session.setLocalWindowSize(connectionWindowBytes)
    this.#sessions.add(session)
    let streams = 0
    const cut = (): void => session.destroy()
    let idle = setTimeout(cut, this.#handshakeTimeoutMs).unref()
    session.on('stream', (stream) => {
      streams++
      clearTimeout(idle)
      stream.once('close', () => {
        streams--
        if (streams === 0) idle = setTimeout(cut, idleConnectionMs).unref()
      })
    })
    session.once('close', () => {
      clearTimeout(idle)
      this.#sessions.delete(session)
    })
  }

  async #answer(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    metadata: LinkRequest['metadata'],
  ): Promise<void> {
    const fault = faultOf(headers, this.#options.path)
    if (fault) {
      refuse(stream, fault.status, fault.message, fault.httpStatus)
      return
    }
    const socket = stream.session?.socket
    if (socket === undefined) return
    const gone = new AbortController()
    stream.once('close', () => gone.abort())
    const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(this.#handshakeTimeoutMs)])
    const request: LinkRequest = { metadata, socket, signal }
    const admission = await this.#admit(request)
    if (stream.destroyed) return
    if ('grpcStatus' in admission) refuse(stream, admission.grpcStatus, admission.message)
    else this.#open(stream, request, admission.metadata)
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
    stream: ServerHttp2Stream,
    request: LinkRequest,
    metadata: Readonly<Record<string, string>>,
  ): void {
    const offered = parseCapabilities(request.metadata[capabilityHeader])
    const capabilities = agreed(this.#options.capabilities, offered)
    stream.respond(
      {
        ...metadata,
        ...(offered.size > 0 && { [capabilityHeader]: formatCapabilities(capabilities) }),
        ':status': 200,
        'content-type': grpcContentType,
      },
      { waitForTrailers: true },
    )
    const side = this.#options.path === '/ProxyService/Proxy' ? 'gateway' : 'server'
    const link = linkOfStream(
      { stream, end: serverEnd(stream), side, capabilities, metadata: request.metadata },
      this.#options,
    )
    this.#links.add(link)
    void link.ended.then(() => this.#links.delete(link))
    this.#options.onLink(link, request)
  }
}

/** Serves the streams of one path; a ProxyService stream is a link with one channel, which the peer dials. */
export const createGrpcService = (options: GrpcServiceOptions): GrpcService =>
  new GrpcStreams(options)
