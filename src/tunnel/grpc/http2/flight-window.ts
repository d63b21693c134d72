/**
 * What the other end may have on its way to us. Whatever is on its way stands in one queue, so a large window makes
 * everybody wait for whoever sends most; a small one leaves a long path empty.
 */
const smallestBytes = 512 * 1024
const largestBytes = 64 * 1024 * 1024

/** The window is long enough when it takes so many round trips to use it up. */
const enoughRoundTrips = 2

/** The receive window of a stream: small on a short path, and growing with the distance. */
export class FlightWindow {
  #size = smallestBytes
  #roundStart = 0

  get size(): number {
    return this.#size
  }

  /** Half the window has been used up: tells how large it is from now on. */
  used(nowMs: number, roundTripMs: number): number {
    const elapsedMs = nowMs - this.#roundStart
    this.#roundStart = nowMs
    if (2 * elapsedMs < enoughRoundTrips * roundTripMs)
      this.#size = Math.min(2 * this.#size, largestBytes)
    return this.#size
  }
}
