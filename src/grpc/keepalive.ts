import type { Clock } from '../core/index.ts'

/** When a silent peer is pinged, and how long it may take to respond. */
export interface Keepalive {
  readonly timeMs: number
  readonly timeoutMs: number
}

/** A connection that can be pinged. */
export interface PingTarget {
  /** Monotonic time at which the last bytes of the peer arrived. */
  readonly lastReceivedAt: number
  ping(): void
}

/**
 * Detects a peer that is gone. All received bytes count: on a slow path the response to a ping waits behind everything
 * that is queued, while the peer goes on reading.
 */
export class Heartbeat {
  readonly #connection: PingTarget
  readonly #keepalive: Keepalive
  readonly #clock: Clock
  readonly #onTimeout: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(connection: PingTarget, keepalive: Keepalive, clock: Clock, onTimeout: () => void) {
    this.#connection = connection
    this.#keepalive = keepalive
    this.#clock = clock
    this.#onTimeout = onTimeout
    this.#scheduleCheck()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  get #silentMs(): number {
    return this.#clock.monotonic() - this.#connection.lastReceivedAt
  }

  #scheduleCheck(): void {
    this.#schedule(Math.max(this.#keepalive.timeMs - this.#silentMs, 1), () => this.#check())
  }

  #check(): void {
    if (this.#silentMs < this.#keepalive.timeMs) {
      this.#scheduleCheck()
      return
    }
    const pingedAt = this.#clock.monotonic()
    this.#connection.ping()
    this.#schedule(this.#keepalive.timeoutMs, () => {
      if (this.#connection.lastReceivedAt < pingedAt) this.#onTimeout()
      else this.#scheduleCheck()
    })
  }

  #schedule(ms: number, then: () => void): void {
    this.#timer = setTimeout(then, ms).unref()
  }
}
