/** What a leg tells whoever reads from it. */
export interface LegEvents {
  /** Bytes that came in; they count as unread until `consumed` is called for them. */
  data(chunk: Buffer): void
  /** No more bytes will come; the other direction stays open. */
  finished(): void
  /** Bytes given to `write` have left: `backlog` is small again. */
  drained(): void
  /** The leg is gone, in both directions; comes exactly once and last. */
  closed(error?: Error): void
}

/**
 * One side of a tunnelled connection: a socket, or a channel of a link.
 * Everything is counted in bytes, so that a side that does not read holds up nobody else.
 */
export interface Leg {
  /** To be called once, in the same tick in which the leg was handed over; nothing is reported before. */
  start(events: LegEvents): void
  /** Takes bytes and keeps them in order; the caller stops reading elsewhere while `backlog` is above its limit. */
  write(chunk: Buffer): void
  /** Bytes taken by `write` that have not left yet. */
  readonly backlog: number
  /** The bytes reported by `data` that the reader is done with. */
  consumed(bytes: number): void
  /** Ends our direction once everything written has left. */
  finish(): void
  /** Ends both directions; what was written before still leaves if `error` is absent. */
  close(error?: Error): void
}
