import type { Server } from 'node:net'
import type { TlsOptions, Server as TlsServer } from 'node:tls'
import {
  type Authentication,
  type CallRequest,
  createGrpcServer,
  type GrpcServer,
  type ServerCall,
} from '../../grpc/index.ts'
import type { BufferBudget } from './buffer-budget.ts'
import { createLink, type LinkOptions, ServerLinkCall, type StreamPath } from './grpc-link.ts'
import { maxFrameBytes } from './limits.ts'
import {
  capabilityHeader,
  commonCapabilities,
  formatCapabilities,
  type Link,
  parseCapabilities,
} from './link.ts'

/** Options of a link server. */
export interface LinkServerOptions extends Omit<LinkOptions, 'budget'> {
  readonly path: StreamPath
  /** Streams per connection; default 1000. A front end needs one for each of its connections. */
  readonly maxStreams?: number
  /** Streams that a connection may open in 10 s, however they end; default: no limit. */
  readonly maxNewStreams?: number
  /** Decides before anything is sent. If it throws, the link is refused with status 2 and without the cause. */
  authenticate(request: CallRequest): Promise<Authentication>
  /** The budget that all links of this peer share. */
  budgetOf?(request: CallRequest): BufferBudget
  /** Takes an open link; has to call `start` in the same tick. */
  onLink(link: Link, request: CallRequest): void
}

/** Serves one of Konnectivity's streaming methods; each call is a link. A ProxyService call is a link with one channel, which the peer dials. */
export class LinkServer {
  readonly #options: LinkServerOptions
  readonly #server: GrpcServer
  readonly #links = new Set<Link>()

  constructor(options: LinkServerOptions) {
    const { path, maxStreams, maxNewStreams, handshakeTimeoutMs, log } = options
    this.#options = options
    this.#server = createGrpcServer({
      methods: {
        [path]: {
          authenticate: (request) => options.authenticate(request),
          serve: (call, request, metadata) => this.#serve(call, request, metadata),
        },
      },
      maxFrameBytes,
      ...(maxStreams !== undefined && { maxStreams }),
      ...(maxNewStreams !== undefined && { maxNewStreams }),
      ...(handshakeTimeoutMs !== undefined && { handshakeTimeoutMs }),
      log,
    })
  }

  /** Open links. */
  get linkCount(): number {
    return this.#links.size
  }

  /** A server to listen with; `setSecureContext` changes its certificates. */
  secureServer(tls: TlsOptions): TlsServer {
    return this.#server.secureServer(tls)
  }

  /** A server for a UNIX socket. */
  cleartextServer(): Server {
    return this.#server.cleartextServer()
  }

  /** Destroys all connections; the caller closes the listening servers. */
  close(): void {
    this.#server.close()
  }

  #serve(call: ServerCall, request: CallRequest, metadata: Readonly<Record<string, string>>): void {
    const offered = parseCapabilities(request.metadata[capabilityHeader])
    const capabilities = commonCapabilities(this.#options.capabilities, offered)
    call.respond({
      ...metadata,
      ...(offered.size > 0 && { [capabilityHeader]: formatCapabilities(capabilities) }),
    })
    const side = this.#options.path === '/ProxyService/Proxy' ? 'gateway' : 'server'
    const budget = this.#options.budgetOf?.(request)
    const link = createLink(
      new ServerLinkCall(call),
      { side, capabilities, metadata: request.metadata },
      { ...this.#options, ...(budget && { budget }) },
    )
    this.#links.add(link)
    void link.ended.then(() => this.#links.delete(link))
    this.#options.onLink(link, request)
  }
}
