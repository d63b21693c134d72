import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex, Readable } from 'node:stream'

/** Header names in lower case; a list stands for several headers of that name. */
export type HeaderRecord = Readonly<Record<string, string | readonly string[]>>

/** One request that goes on to the API server. */
export interface UpstreamRequest {
  readonly method: string
  /** Path and query, beginning with a slash. */
  readonly path: string
  /** Without host, identity and whatever belongs to one connection only. */
  readonly headers: HeaderRecord
  readonly body?: Buffer
  /** In place of `body`: sent as it arrives. */
  readonly stream?: Readable
  /** Set if an application behind the server may answer, whose 401 says nothing about our credential. */
  readonly relayed?: boolean
  /** Ends the request, and its answer if that has begun. */
  readonly signal: AbortSignal
}

/** An answer whose head has arrived. */
export interface UpstreamResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** To be read to its end or destroyed. */
  readonly body: Readable
}

/** What came of asking for another protocol: a connection that speaks it, or an ordinary answer. */
export type UpgradeOutcome =
  | { readonly kind: 'switched'; readonly headers: IncomingHttpHeaders; readonly socket: Duplex }
  | ({ readonly kind: 'refused' } & UpstreamResponse)

/** The API server, reached with the user's credentials. */
export interface Upstream {
  /** For messages; holds no credential. */
  readonly server: string
  /** Rejects when no answer came. */
  send(request: UpstreamRequest): Promise<UpstreamResponse>
  /** Asks for the protocol that the headers `upgrade` and `connection` name. */
  upgrade(request: UpstreamRequest): Promise<UpgradeOutcome>
  /** Cuts every connection. */
  destroy(): void
}
