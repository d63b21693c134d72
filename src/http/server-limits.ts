/** What a server bears from its clients before it cuts them off. */
export interface ServerLimits {
  /** Open connections over all addresses together. */
  readonly maxConnections: number
  /** Size of the request line and headers together. */
  readonly maxHeaderBytes: number
  /** On HTTP/2, by which its layer ends the stream; on HTTP/1.1 handlers count the headers themselves. */
  readonly maxHeaderCount: number
  /** From the first byte of a connection to the end of the TLS handshake. */
  readonly handshakeTimeoutMs: number
  /** For the headers of a request, and for the first request of a connection to begin. */
  readonly headersTimeoutMs: number
  /** In which time a request body must bring a few kilobytes, unless its reader keeps it waiting. */
  readonly bodyIdleMs: number
  /** How long a connection without a request stays open. */
  readonly idleTimeoutMs: number
  /** How long the rest of a body that nobody wants is read, so that the client sees the answer. */
  readonly lingerMs: number
  /** Requests at a time on one HTTP/1.1 connection; more close it. */
  readonly maxPipelinedRequests: number
  /** Requests at a time on one HTTP/2 connection. */
  readonly maxConcurrentStreams: number
  /**
   * By how many aborted requests may outnumber completed ones on an HTTP/2 connection. Opening and
   * resetting streams is free for a client and costs us work; below Node's own limit of 1,000, after
   * which it says goodbye but leaves the connection open.
   */
  readonly maxAbortedLead: number
}

/** Header lines of a request that guard and local proxy forward; browsers send 30. */
export const maxForwardedHeaders = 100

/** Limits that a small cluster never feels. */
export const defaultServerLimits: ServerLimits = {
  maxConnections: 10_000,
  maxHeaderBytes: 64 * 1024,
  maxHeaderCount: 1_000,
  handshakeTimeoutMs: 10_000,
  headersTimeoutMs: 30_000,
  bodyIdleMs: 60_000,
  idleTimeoutMs: 90_000,
  lingerMs: 1_000,
  maxPipelinedRequests: 1_000,
  maxConcurrentStreams: 250,
  maxAbortedLead: 500,
}
