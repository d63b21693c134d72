import type { Clock } from '../core/index.ts'

/** A connection whose other end can be asked for a sign of life. */
export interface Asked {
  /** When anything last came from there. */
  readonly heardAt: number
  ping(): void
}

/**
 * Finds out whether a silent peer is still there. Whatever comes from it counts: on a slow path an answer to a ping
 * stands behind all that waits to be sent, while the peer goes on to take it.
 */
export class Heartbeat {
  readonly #connection: Asked
  readonly #keepalive: Keepalive
  readonly #clock: Clock
  readonly #onSilence: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(connection: Asked, keepalive: Keepalive, clock: Clock, onSilence: () => void) {
    this.#connection = connection
    this.#keepalive = keepalive
    this.#clock = clock
    this.#onSilence = onSilence
    this.#arm()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Asks the peer for a sign of life. */
  ping(): void {
    this.#connection.ping()
  }

  #arm(): void {
    const silentMs = this.#clock.monotonic() - this.#connection.heardAt
    this.#wait(Math.max(this.#keepalive.timeMs - silentMs, 1), () => this.#check())
  }

  #check(): void {
    if (this.#clock.monotonic() - this.#connection.heardAt < this.#keepalive.timeMs) {
      this.#arm()
      return
    }
    const asked = this.#clock.monotonic()
    this.ping()
    this.#wait(this.#keepalive.timeoutMs, () => {
      if (this.#connection.heardAt < asked) this.#onSilence()
      else this.#arm()
    })
  }

  #wait(ms: number, then: () => void): void {
    this.#timer = setTimeout(then, ms).unref()
  }
}

/** When a silent peer is asked whether it is still there, and how long it may take to answer. */
export interface Keepalive {
  readonly timeMs: number
  readonly timeoutMs: number
}
