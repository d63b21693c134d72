/** A try to send a request failed. */
export class TryFailed extends Error {
  /** Whether it says nothing about the server: a kept connection turned out to be closed. */
  readonly stale: boolean

  constructor(cause: unknown, stale: boolean) {
    super('a try to send a request failed', { cause })
    this.stale = stale
  }
}

/** What a lost connection reports over HTTP/1.1; used for HTTP/2 too, so that nobody has to know two words. */
export class ConnectionReset extends Error {
  readonly code = 'ECONNRESET'

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
  }
}
