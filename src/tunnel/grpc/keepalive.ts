import type { Clock } from '../../core/index.ts'
import type { Http2Connection } from './http2/index.ts'
import type { Keepalive } from './options.ts'

/** Finds out whether a silent peer is still there. */
export class Heartbeat {
  readonly #connection: Http2Connection
  readonly #keepalive: Keepalive
  readonly #clock: Clock
  readonly #onSilence: () => void
  #lastHeard: number
  #timer: NodeJS.Timeout | undefined

  constructor(
    connection: Http2Connection,
    keepalive: Keepalive,
    clock: Clock,
    onSilence: () => void,
  ) {
    this.#connection = connection
    this.#keepalive = keepalive
    this.#clock = clock
    this.#onSilence = onSilence
    this.#lastHeard = clock.monotonic()
    this.#arm()
  }

  /** Something came from the peer. */
  heard(): void {
    this.#lastHeard = this.#clock.monotonic()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Asks the peer for a sign of life. */
  ping(): void {
    this.#connection.ping(() => this.heard())
  }

  #arm(): void {
    const silentMs = this.#clock.monotonic() - this.#lastHeard
    this.#wait(Math.max(this.#keepalive.timeMs - silentMs, 1), () => this.#check())
  }

  #check(): void {
    if (this.#clock.monotonic() - this.#lastHeard < this.#keepalive.timeMs) {
      this.#arm()
      return
    }
    const asked = this.#clock.monotonic()
    this.ping()
    this.#wait(this.#keepalive.timeoutMs, () => {
      if (this.#lastHeard < asked) this.#onSilence()
      else this.#arm()
    })
  }

  #wait(ms: number, then: () => void): void {
    this.#timer = setTimeout(then, ms).unref()
  }
}
