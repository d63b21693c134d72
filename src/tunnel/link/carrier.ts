/** What a carrier tells the link that it carries. */
export interface CarrierEvents {
  data(chunk: Buffer): void
  /** Some of what was written has left. */
  progress(): void
  /** The carrier is gone; comes exactly once and last. No error: it ended in order. */
  ended(error?: Error): void
}

/** The byte stream in both directions that a link runs on. */
export interface Carrier {
  start(events: CarrierEvents): void
  /** Takes buffers that leave in order, in one system call if possible. */
  write(parts: readonly Buffer[]): void
  /** Bytes taken by `write` that have not left yet. */
  readonly backlog: number
  /** Lets the other end send no more than it was allowed already, until it is switched off. */
  throttle(isOn: boolean): void
  /** Lets a throttled other end send a little. */
  allow(bytes: number): void
  /** The shortest round trip seen so far. */
  readonly roundTripMs: number
  /** Ends in order once everything written has left. */
  end(): void
  /** Ends at once. */
  destroy(error?: Error): void
}
