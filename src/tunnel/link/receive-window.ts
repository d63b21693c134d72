/** What a channel may send before it is granted more; both ends know it without a word. */
export const initialWindowBytes = 1024 * 1024

/** A window that is used up in fewer round trips than this is too small for the path. */
const enoughRoundTrips = 4

/** What the window needs to know of its surroundings. */
export interface WindowSurroundings {
  readonly maxWindowBytes: number
  readonly roundTripMs: number
  nowMs(): number
}

/** Counts what the other end may still send on a channel, and grows while the reader keeps up with a long path. */
export class ReceiveWindow {
  readonly #surroundings: WindowSurroundings
  #size = initialWindowBytes
  #open = initialWindowBytes
  #ungranted = 0
  #roundBytes = 0
  #roundStart: number

  constructor(surroundings: WindowSurroundings) {
    this.#surroundings = surroundings
    this.#roundStart = surroundings.nowMs()
  }

  /** Tells whether the other end was allowed to send this much. */
  received(bytes: number): boolean {
    this.#open -= bytes
    return this.#open >= 0
  }

  /** The bytes to grant now that the reader is done with some; 0 while it is not worth a packet. */
  consumed(bytes: number): number {
    this.#ungranted += bytes
    this.#roundBytes += bytes
    if (this.#ungranted < this.#size / 4) return 0
    const grant = this.#ungranted + this.#growth()
    this.#ungranted = 0
    this.#open += grant
    return grant
  }

  #growth(): number {
    if (this.#roundBytes < this.#size) return 0
    const { maxWindowBytes, roundTripMs } = this.#surroundings
    const now = this.#surroundings.nowMs()
    const isShort = now - this.#roundStart < enoughRoundTrips * roundTripMs
    this.#roundStart = now
    this.#roundBytes = 0
    if (!isShort || this.#size >= maxWindowBytes) return 0
    const before = this.#size
    this.#size = Math.min(2 * before, maxWindowBytes)
    return this.#size - before
  }
}
