import type { Readable } from 'node:stream'
import type { ClusterRequest, ClusterResponse, CredentialSource, RequestFn } from '../credential.ts'

/** Header names in lower case; a list stands for several headers of that name. */
export type RequestHeaders = ClusterRequest['headers']

/** One request to an API server. */
export interface TransportRequest extends ClusterRequest {
  /** In place of `body`: a stream, which is sent once, or a function that makes it anew for each attempt. */
  readonly stream?: Readable | (() => Readable)
}

/** An answer whose head has arrived. */
export type TransportResponse = ClusterResponse

/** Carries requests to one API server and proves who sends them. */
export interface Transport {
  /** Where requests go, for messages; holds no credential. */
  readonly server: string
  /** Rejects with ConnectionFailed when no answer came, and with the signal's reason when it aborts. */
  send(request: TransportRequest): Promise<TransportResponse>
  /** Cuts every connection. */
  destroy(): void
}

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

/** Authorities that never change. */
export function staticTrust(pem: string): TrustSource {
  return { current: async () => pem, onChange: () => () => {}, dispose: () => {} }
}

/** Authorities that their owner replaces. */
export class ReplaceableTrust implements TrustSource {
  readonly #listeners = new Set<() => void>()
  #pem: string

  constructor(pem: string) {
    this.#pem = pem
  }

  current(): Promise<string> {
    return Promise.resolve(this.#pem)
  }

  /** Believes these from the next connection on. */
  replace(pem: string): void {
    if (pem === this.#pem) return
    this.#pem = pem
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  dispose(): void {
    this.#listeners.clear()
  }
}
