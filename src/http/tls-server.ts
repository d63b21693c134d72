import { constants } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  constants as constants_tlsServer,
  createSecureServer,
  type Http2SecureServer,
  type SecureServerOptions,
  type ServerHttp2Session,
} from 'node:http2'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import type { Logger, Secret } from '../core/index.ts'
import { discardUnreadBody } from './body.ts'
import { endByBodyProblem, watchBody } from './body-limits.ts'
import { Connections } from './connection-tracker.ts'
import { ignoreFollowing, isPoisoned } from './headers.ts'
import { deliversMalformedHeaders, http2HeaderOptions } from './http2-probe.ts'
import { type ListenAddress, listenOnAll, portOf } from './listen.ts'
import { defaultServerLimits, type ServerLimits } from './server-limits.ts'
import { EventfulHttp2Response, EventfulServerResponse } from './server-response.ts'

/** What a TLS server shows and whom it may believe. */
export interface TlsMaterial {
  /** The certificate, followed by its intermediates. */
  readonly certPem: string
  readonly keyPem: Secret
  /** CAs whose client certificates are asked for; none are asked for when it is absent. */
  readonly clientCaPem?: string
  /** TLS 1.2 unless given. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
}

/**
 * The TLS settings of all our servers. Sessions cannot be resumed: a resumed session carries the
 * verdict of its first handshake, also when the CA has changed since, and with TLS 1.3 Node calls it
 * authorized even if no certificate was ever shown. With P-256 keys nothing is lost: a resumed
 * handshake measured no cheaper than a new one.
 */
export function tlsContextOptions(material: TlsMaterial): SecureContextOptions {
  return {
    cert: material.certPem,
    key: material.keyPem.reveal(),
    ...(material.clientCaPem !== undefined && { ca: material.clientCaPem }),
    minVersion: material.minVersion ?? 'TLSv1.2',
    // Tickets off leaves resumption by session id, which needs a store, and Node's server has none.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  }
}

/** Answers a request; the same for HTTP/1.1 and HTTP/2, whose compatibility objects have this shape. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

/** Takes over a connection that asked for another protocol (HTTP/1.1 only). */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** What a TLS server is made of. */
export interface TlsServerOptions {
  readonly material: TlsMaterial
  readonly onRequest: RequestHandler
  readonly onUpgrade?: UpgradeHandler
  /** Sees each connection before its handshake, and may destroy it. */
  readonly onConnection?: (socket: Socket) => void
  readonly limits?: Partial<ServerLimits>
  /** Whether HTTP/2 is offered next to HTTP/1.1; by default only if this runtime passes the probe. */
  readonly http2?: boolean
  readonly log: Logger
}

/** One TLS port for HTTP/1.1, and for HTTP/2 where it is safe, with optional client certificates. */
export class TlsServer {
  readonly #options: TlsServerOptions
  readonly #limits: ServerLimits
  readonly #connections: Connections
  readonly #drain = new AbortController()
  #material: TlsMaterial
  #servers: (Http2SecureServer | HttpsServer)[] = []

  constructor(options: TlsServerOptions) {
    this.#options = options
    this.#limits = { ...defaultServerLimits, ...options.limits }
    this.#connections = new Connections(this.#limits.maxPipelinedRequests)
    this.#material = options.material
  }

  /** Aborts when the server begins to drain, so that open watches can end in good order. */
  get draining(): AbortSignal {
    return this.#drain.signal
  }

  /** Connections that are open now. */
  get connectionCount(): number {
    return this.#connections.size
  }

  /** Opens the port on every address and returns it; port 0 picks a free one. */
  async listen(addresses: readonly ListenAddress[], port: number): Promise<number> {
    const offersHttp2 = this.#options.http2 ?? (await deliversMalformedHeaders())
    this.#options.log.info(
      { http2: offersHttp2 },
      offersHttp2
        ? 'offering HTTP/2 and HTTP/1.1'
        : 'offering HTTP/1.1 only: the HTTP/2 layer of this Node.js drops malformed headers',
    )
    const create = (): Http2SecureServer | HttpsServer => this.#createServer(offersHttp2)
    this.#servers = await listenOnAll(create, addresses, port)
    const [first] = this.#servers
    return first ? portOf(first) : port
  }

  /** Shows another certificate to connections from now on; open ones stay. */
  setSecureContext(material: TlsMaterial): void {
    this.#material = material
    for (const server of this.#servers) server.setSecureContext(tlsContextOptions(material))
  }

  /** Stops accepting, lets requests finish until `deadline` aborts, then cuts. Safe to call twice. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#drain.abort()
    for (const server of this.#servers) server.close()
    await this.#connections.drain(deadline)
  }

  #createServer(offersHttp2: boolean): Http2SecureServer | HttpsServer {
    const limits = this.#limits
    const options = {
      // As Node's own HTTP servers: the second half of an answer must not wait until the first one is acknowledged.
      noDelay: true,
      ...tlsContextOptions(this.#material),
      requestCert: this.#material.clientCaPem !== undefined,
      // Verified per CA by whoever needs it: the handshake cannot say under which CA a certificate is.
      rejectUnauthorized: false,
      handshakeTimeout: limits.handshakeTimeoutMs,
    }
    // The HTTP/1.1 half of an HTTP/2 server reads these properties but has no options for them.
    const http1 = {
      maxHeaderSize: limits.maxHeaderBytes,
      // Node would respond itself and then serve what follows on the connection.
      requireHostHeader: false,
      keepAliveTimeout: limits.idleTimeoutMs,
      headersTimeout: limits.headersTimeoutMs,
      // Bodies have their own deadline where they are read: a proxied upload may take long.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
    }
    const server = offersHttp2
      ? Object.assign(createSecureServer({ ...options, ...http2Options(limits) }), http1)
      : createHttpsServer({ ...options, ...http1, ServerResponse: EventfulServerResponse })
    // Beyond a count Node drops headers silently, a credential among them: handlers count them and respond with 431.
    Object.assign(server, { maxHeadersCount: 0 })
    this.#attach(server)
    return server
  }

  // `node:http2` and `node:https` have unrelated types for the same events.
  #attach(server: EventEmitter): void {
    const { log, onUpgrade, onConnection } = this.#options
    server.on('connection', (socket: Socket) => {
      this.#connections.accepted(socket)
      // Not by `maxConnections`, which Node counts per address.
      if (this.#connections.size > this.#limits.maxConnections) socket.destroy()
      else onConnection?.(socket)
    })
    server.on('secureConnection', (socket: TLSSocket) => {
      if (socket.alpnProtocol !== 'h2') this.#connections.openedHttp1(socket)
    })
    server.on('session', (session: ServerHttp2Session) => this.#openedSession(session))
    server.on('sessionError', (err: Error) => log.debug({ err }, 'http2 session failed'))
    server.on('tlsClientError', (err: Error) => log.debug({ err }, 'tls handshake failed'))
    server.on('request', (request: IncomingMessage, response: ServerResponse) =>
      this.#serve(request, response),
    )
    if (onUpgrade) {
      server.on('upgrade', (request: IncomingMessage, socket: TLSSocket, head: Buffer) => {
        // Node stops listening here, and an error that nobody listens to would end the process.
        socket.on('error', (err) => log.debug({ err }, 'upgraded connection failed'))
        if (!this.#connections.upgraded(socket) || isPoisoned(socket)) {
          socket.destroy()
          return
        }
        try {
          onUpgrade(request, socket, head)
        } catch (err) {
          log.error({ err }, 'upgrade handler failed')
          socket.destroy()
        }
      })
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const isHttp2 = 'stream' in request
    if (!isHttp2 && isPoisoned(request.socket)) return
    this.#connections.began(request, response)
    // HTTP/1.1 has been refused by the parser; a client of HTTP/2 may ignore our settings for a while.
    if (isHttp2 && sizeOf(request) > this.#limits.maxHeaderBytes) {
      response.writeHead(431).end()
      return
    }
    const { headers } = request
    if (!isHttp2 && (headers['transfer-encoding'] ?? headers['content-length'] ?? '0') !== '0')
      watchBody(request, this.#limits, (problem) => endByBodyProblem(request, response, problem))
    response.on('finish', () => {
      if (!isHttp2 && isPoisoned(request.socket)) request.socket.destroySoon()
      else discardUnreadBody(request, response, this.#limits.lingerMs)
    })
    if (lacksHost(request)) {
      ignoreFollowing(request)
      response.writeHead(400, { Connection: 'close' }).end()
      return
    }
    try {
      this.#options.onRequest(request, response)
    } catch (err) {
      this.#options.log.error({ err }, 'request handler failed')
      response.destroy()
    }
  }

  #openedSession(session: ServerHttp2Session): void {
    this.#connections.openedHttp2(session)
    session.setLocalWindowSize(1024 * 1024)
    let streams = 0
    let lead = 0
    session.on('stream', (stream) => {
      streams++
      stream.once('close', () => {
        streams--
        const isAborted = stream.aborted || stream.rstCode !== constants_tlsServer.NGHTTP2_NO_ERROR
        lead = Math.max(0, lead + (isAborted ? 1 : -1))
        if (lead > this.#limits.maxAbortedLead) session.close()
      })
    })
    session.setTimeout(this.#limits.idleTimeoutMs, () => {
      if (streams === 0) session.close()
    })
  }
}

function http2Options(limits: ServerLimits): SecureServerOptions {
  return {
    allowHTTP1: true,
    Http1ServerResponse: EventfulServerResponse,
    Http2ServerResponse: EventfulHttp2Response,
    // In megabytes. With the default of 10, one large unread answer kills the next stream.
    maxSessionMemory: 1000,
    maxHeaderListPairs: limits.maxHeaderCount,
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    maxSettings: 32,
    maxOutstandingPings: 10,
    ...http2HeaderOptions,
    settings: {
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
      initialWindowSize: 256 * 1024,
      enablePush: false,
    },
  }
}

function sizeOf({ rawHeaders }: IncomingMessage): number {
  let size = 0
  for (const text of rawHeaders) size += text.length
  return size
}

/** A TLS server that does not listen yet. */
export function createTlsServer(options: TlsServerOptions): TlsServer {
  return new TlsServer(options)
}

/** RFC 9112 §3.2: HTTP/1.1 demands the header, HTTP/1.0 and HTTP/2 do not. */
const lacksHost = ({ httpVersion, headers }: IncomingMessage): boolean =>
  httpVersion === '1.1' && headers.host === undefined
