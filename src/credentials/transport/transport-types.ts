import type { Readable } from 'node:stream'
import type { ClusterRequest, ClusterResponse } from '../cluster-request.ts'

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
