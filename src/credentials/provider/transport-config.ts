import type { RequestFn } from '../cluster-request.ts'
import type { CredentialSource } from '../credential.ts'

/** The authorities whose servers are believed; may change while connections are open. */
export interface TrustSource {
  /** PEM text of one or more certificates; asked before each new connection. */
  current(): Promise<string>
  /** Called when `current` has begun to answer something else; returns how to stop listening. */
  onChange(listener: () => void): () => void
  dispose(): void
}

/** How the server proves itself. */
export interface TransportTls {
  /** Absent: the authorities that Node.js believes. */
  readonly trust?: TrustSource
  /** The name the server's certificate must have, if not that of its address. */
  readonly serverName?: string
  readonly insecureSkipVerify?: boolean
}

/** Puts something round the function that sends requests, such as a header or a retry. */
export type RequestWrapper = (next: RequestFn) => RequestFn

/** What a provider may change in a transport, before its first request. */
export interface TransportConfig {
  /** The server's address. */
  readonly server: string
  readonly tls: TransportTls
  /** What has been offered so far, as one source; a wrapper may ask it at any time. */
  readonly credentials: CredentialSource | undefined
  /**
   * Offers what goes into the `Authorization` header: token, or user name and password. The first offer wins;
   * false says that another one was there before.
   */
  offerAuthorization(source: CredentialSource): boolean
  /** Offers the client certificate of new connections. The first offer wins. */
  offerClientCertificate(source: CredentialSource): boolean
  /** The wrapper added last is the outermost: it sees a request first. */
  wrap(wrapper: RequestWrapper): void
}

/**
 * A way to prove to a cluster who one is. Called once for each transport that is made; whatever changes later
 * changes inside the sources and wrappers that it leaves behind.
 */
export interface AuthProvider {
  updateTransportConfig(config: TransportConfig): void | Promise<void>
}
