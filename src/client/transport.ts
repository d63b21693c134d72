import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

/** Header names in lower case; a list stands for several headers of that name. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[]>>

/** One request to an API server. */
export interface TransportRequest {
  readonly method: string
  /** Path and query below the server's address, beginning with a slash. */
  readonly path: string
  readonly headers: RequestHeaders
  readonly body?: Buffer
  /** Ends the request, and the body of its answer if that has begun. */
  readonly signal: AbortSignal
}

/** An answer whose head has arrived. */
export interface TransportResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** To be read to its end or destroyed. */
  readonly body: Readable
}

/** Carries requests to one API server and proves who sends them. */
export interface Transport {
  /** Where requests go, for messages; holds no credential. */
  readonly server: string
  /** Rejects with ConnectionFailed when no answer came, and with the signal's reason when it aborts. */
  send(request: TransportRequest): Promise<TransportResponse>
  /** Cuts every connection. */
  destroy(): void
}
