import type { Server, Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import type { Clock, Logger } from '../../core/index.ts'
import { plainAddress } from '../addresses/source.ts'
import { LinkServer } from '../link/index.ts'
import type { ConnectionLimit } from '../ports/connection-limit.ts'
import { listen, portOf, stopListening } from '../ports/listen.ts'
import { SparseLog } from '../sampled-log.ts'
import { keepaliveOf, strangersAt } from './agent-port.ts'
import { ClientDistrusted } from './agent-registry.ts'
import { type ClientTrust, type RevocationList, trustIn } from './client-trust.ts'
import type { FrontEndConfig, TunnelServerConfig } from './config.ts'
import { serveFrontEndLink } from './frontend/grpc.ts'
import { ConnectFrontEnd } from './frontend/http-connect.ts'
import type { TunnelHub } from './hub.ts'
import { openTlsFiles, type TlsFiles } from './listening/tls-files.ts'
import type { ServerMetrics } from './metrics.ts'

/** What the port for kube-apiserver is made of. */
export interface FrontEndPortParts {
  readonly config: TunnelServerConfig & { readonly frontEnd: FrontEndConfig }
  readonly hub: TunnelHub
  readonly metrics: ServerMetrics
  /** Whom not to let in; nobody is revoked without it. */
  readonly revocations: RevocationList | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** Throws ClientDistrusted for a connection that must not be served. */
type Admit = (socket: Socket) => void

/** What both kinds of front ends can do. */
interface Protocol {
  secureServer(tls: TlsOptions): Server & { setSecureContext(options: TlsOptions): void }
  cleartextServer(): Server
  close(): void
  readonly count: number
}

/** The port or socket on which kube-apiserver connects. */
export class FrontEndPort {
  readonly #parts: FrontEndPortParts
  readonly #protocol: Protocol
  #tls: TlsFiles | undefined
  readonly #strangers: ConnectionLimit
  #trust: ClientTrust | undefined
  #server: Server | undefined

  constructor(parts: FrontEndPortParts) {
    this.#parts = parts
    const sparseLog = new SparseLog(parts.log, parts.clock)
    this.#strangers = strangersAt('client', sparseLog)
    const admit: Admit = (socket) => void this.#trust?.admit(socket)
    this.#protocol =
      parts.config.frontEnd.mode === 'grpc'
        ? grpcProtocol(parts, admit)
        : connectProtocol(parts, admit)
  }

  /** gRPC streams, or HTTP CONNECT connections. */
  get count(): number {
    return this.#protocol.count
  }

  get port(): number {
    return this.#server ? portOf(this.#server) : 0
  }

  /** Opens the port and says where it is. */
  async open(): Promise<string> {
    const { place, mode } = this.#parts.config.frontEnd
    const what = mode === 'grpc' ? 'gRPC clients' : 'HTTP CONNECT clients'
    this.#server =
      'path' in place ? this.#protocol.cleartextServer() : await this.#secureServer(place.tls)
    return listen(this.#server, place, what)
  }

  /** Accepts no more clients; those that are connected stay. */
  stopAccepting(): void {
    this.#tls?.close()
    const server = this.#server
    if (!server) return
    this.#server = undefined
    // Takes the unix socket away at once; not awaited, since it resolves when the last connection has gone.
    void stopListening(server)
  }

  close(): void {
    this.stopAccepting()
    this.#protocol.close()
  }

  async #secureServer(files: {
    readonly certFile: string
    readonly keyFile: string
    readonly clientCaFile: string
  }): Promise<Server> {
    const { config, revocations, clock, log } = this.#parts
    const { tlsMinVersion: minVersion, ciphers } = config
    this.#tls = await openTlsFiles({
      ...files,
      minVersion,
      ...(ciphers !== undefined && { ciphers }),
      clock,
      log,
    })
    this.#trust = trustIn(this.#tls, { revocations, needsHolder: false, clock, log })
    const server = this.#protocol.secureServer(this.#tls.options)
    this.#tls.follow(server)
    this.#strangers.watch(server)
    server.on('secureConnection', (socket: Socket) => this.#strangers.release(socket))
    return server
  }
}

function grpcProtocol(parts: FrontEndPortParts, admit: Admit): Protocol {
  const { config, hub, metrics, log } = parts
  const links = new LinkServer({
    path: '/ProxyService/Proxy',
    capabilities: [],
    log,
    ...keepaliveOf(config.frontEnd.keepaliveMs),
    ...(config.limits && { limits: config.limits }),
    packets: metrics.tally('client'),
    // Who may connect at all is decided by the socket's mode or by the handshake.
    authenticate: async ({ socket }) => {
      try {
        admit(socket)
        return { metadata: {} }
      } catch (error) {
        if (!(error instanceof ClientDistrusted)) throw error
        const from = plainAddress(socket.remoteAddress)
        log.warn({ from, why: error.message }, 'client refused')
        return { grpcStatus: 2, message: 'the client could not be authenticated' }
      }
    },
    onLink: (link) => serveFrontEndLink(link, { hub, metrics, log }),
  })
  return {
    secureServer: (tls) => links.secureServer(tls),
    cleartextServer: () => links.cleartextServer(),
    close: () => links.close(),
    get count() {
      return links.linkCount
    },
  }
}

function connectProtocol(parts: FrontEndPortParts, admit: Admit): Protocol {
  const { hub, metrics, clock, log } = parts
  const frontEnd = new ConnectFrontEnd({ hub, metrics, admit, clock, log })
  return {
    secureServer: (tls) => frontEnd.secureServer(tls),
    cleartextServer: () => frontEnd.cleartextServer(),
    close: () => frontEnd.close(),
    get count() {
      return frontEnd.connectionCount
    },
  }
}
