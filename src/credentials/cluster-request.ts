import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

/** One request to a cluster's API server. */
export interface ClusterRequest {
  readonly method: string
  /** Path and query below the server's address, beginning with a slash. */
  readonly path: string
  /** Names in lower case; a list stands for several headers of that name. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: Buffer
  /** Set if an application behind the server may answer, whose 401 says nothing about our credential. */
  readonly relayed?: boolean
  /** Ends the request, and the body of its answer if that has begun. */
  readonly signal: AbortSignal
}

/** An answer whose head has arrived. */
export interface ClusterResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** To be read to its end or destroyed. */
  readonly body: Readable
}

/** Carries one request to a cluster. */
export type RequestFn = (request: ClusterRequest) => Promise<ClusterResponse>
