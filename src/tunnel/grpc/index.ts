import type { Server } from 'node:net'
import type { TlsOptions, Server as TlsServer } from 'node:tls'
import type { Link } from '../link/index.ts'
import type {
  Admission,
  ConnectLinkOptions,
  LinkRequest,
  LinkSettings,
  StreamPath,
} from './options.ts'

export { LinkBroken, LinkRefused, LinkUnreachable } from './errors.ts'
export type * from './options.ts'

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

/** Opens a link; rejects with LinkRefused or LinkUnreachable. */
export declare function connectLink(options: ConnectLinkOptions): Promise<Link>

/** Serves the streams of one path; a ProxyService stream is a link with one channel, which the peer dials. */
export declare function createGrpcService(options: GrpcServiceOptions): GrpcService
