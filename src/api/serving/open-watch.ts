import { type ApiError, longestTimerMs, toKubeStatus } from '../../core/index.ts'
import type { Subscription } from '../../storage/index.ts'
import type { ApiCall } from './api-call.ts'
import { type EventEncoder, errorLine } from './event-bytes.ts'
import { writeShared } from './shared-chunk.ts'
import type { WatchQuery } from './watch-query.ts'
import { writePaced } from './write-paced.ts'

/** Bounds of every watch. */
export interface WatchLimits {
  /** Watches without a timeout end after this time, and at the latest after twice of it. */
  readonly minTimeoutMs: number
  readonly bookmarkEveryMs: number
  /** A client that lets more than this pile up unread is cut off. */
  readonly maxUnreadBytes: number
}

/** Kubernetes' own bounds, where it has them. */
export const defaultWatchLimits: WatchLimits = {
  minTimeoutMs: 30 * 60_000,
  bookmarkEveryMs: 60_000,
  maxUnreadBytes: 16 * 2 ** 20,
}

/** One open watch: writes lines to its client until somebody ends it. */
export class OpenWatch {
  readonly #call: ApiCall
  readonly #limits: WatchLimits
  readonly #timers: NodeJS.Timeout[] = []
  readonly ended: Promise<void>
  #subscription: Subscription | undefined
  #end: () => void = () => {}
  #open = true

  constructor(call: ApiCall, limits: WatchLimits) {
    this.#call = call
    this.#limits = limits
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    call.signal.addEventListener('abort', () => this.end(), { once: true })
    call.response.once('close', () => this.end())
    if (call.signal.aborted) this.end()
  }

  write(line: Buffer): void {
    if (!this.#open || line.length === 0) return
    writeShared(this.#call.response, line)
    if (this.#call.response.writableLength > this.#limits.maxUnreadBytes) this.cut()
  }

  writeAll(lines: readonly Buffer[]): void {
    for (const line of lines) this.write(line)
  }

  /** Writes as fast as the client reads; for what is too much to wait in memory. */
  writeSlowly(lines: Iterable<Buffer>): Promise<void> {
    return writePaced(this.#call.response, lines, () => !this.#open)
  }

  follow(subscribe: () => Subscription): void {
    this.#subscription = subscribe()
    if (!this.#open) this.#subscription.close()
  }

  /** Ends with the reason in the stream, as Kubernetes does it once an answer has begun. */
  fail(error: ApiError): void {
    this.write(errorLine(toKubeStatus(error)))
    this.end()
  }

  /** Ends in good order: the client may come back and resume. */
  end(): void {
    if (!this.#close()) return
    this.#call.response.end()
  }

  /** Ends a client that does not read: what is unread is dropped with the connection. */
  cut(): void {
    if (!this.#close()) return
    // Without an error, HTTP/2 would end the stream as if it were complete.
    this.#call.response.destroy(new Error('the client does not read its watch'))
  }

  startTimers(query: WatchQuery, encoder: EventEncoder): void {
    const { minTimeoutMs, bookmarkEveryMs } = this.#limits
    const lifeMs =
      query.timeoutSeconds === undefined || query.timeoutSeconds === 0
        ? minTimeoutMs * (1 + Math.random())
        : query.timeoutSeconds * 1000
    this.#timers.push(setTimeout(() => this.end(), Math.min(lifeMs, longestTimerMs)))
    if (!query.bookmarks) return
    const { store } = this.#call.context
    const mark = () => this.write(encoder.bookmark(store.revision, false))
    this.#timers.push(setInterval(mark, bookmarkEveryMs))
  }

  #close(): boolean {
    if (!this.#open) return false
    this.#open = false
    this.#subscription?.close()
    for (const timer of this.#timers) clearTimeout(timer)
    this.#end()
    return true
  }
}
