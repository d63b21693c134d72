import type { Clock } from '../../core/index.ts'
import { RetryGate } from './retry-gate.ts'

/** How something outside the process is looked at. */
export interface PolledParts<T> {
  readonly read: () => Promise<T>
  readonly same: (a: T, b: T) => boolean
  /** It is read no more often than this. */
  readonly periodMs: number
  readonly clock: Clock
  /** Counts until something could be read. */
  readonly initial?: T
  /** Told when what was read before is kept because it cannot be read now. */
  readonly onFailure: (error: unknown) => void
}

type Listener<T> = (next: T, previous: T) => void

/** How often it is looked at while somebody waits for a change, although nobody asks for the value. */
const idlePollMs = 5 * 60_000

/** A value that is kept somewhere else and may change there; the last good one counts. */
export class PolledValue<T> {
  readonly #parts: PolledParts<T>
  readonly #listeners = new Set<{ readonly call: Listener<T> }>()
  readonly #forced = new RetryGate({ firstMs: 1_000, longestMs: 30_000 })
  #held: { readonly value: T } | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<T> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(parts: PolledParts<T>) {
    this.#parts = parts
    if (parts.initial !== undefined) this.#held = { value: parts.initial }
  }

  /** The value, read again if that is due. */
  current(): Promise<T> {
    const { clock, periodMs } = this.#parts
    if (this.#held && clock.monotonic() - this.#readAt < periodMs) {
      return Promise.resolve(this.#held.value)
    }
    return this.#read()
  }

  /** The value, read again now unless that was done a moment ago. */
  fresh(): Promise<T> {
    const now = this.#parts.clock.monotonic()
    if (this.#held && !this.#forced.isOpen(now)) return Promise.resolve(this.#held.value)
    this.#forced.close(now)
    return this.#read()
  }

  onChange(call: Listener<T>): () => void {
    const entry = { call }
    this.#listeners.add(entry)
    this.#timer ??= setInterval(() => void this.#read().catch(() => {}), idlePollMs).unref()
    return () => {
      this.#listeners.delete(entry)
      if (this.#listeners.size === 0) this.#stopTimer()
    }
  }

  dispose(): void {
    this.#listeners.clear()
    this.#stopTimer()
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #read(): Promise<T> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readOnce(): Promise<T> {
    const { read, same, clock, onFailure } = this.#parts
    const before = this.#held
    try {
      const value = await read()
      this.#readAt = clock.monotonic()
      if (before && same(before.value, value)) return before.value
      this.#held = { value }
      if (before) for (const { call } of Array.from(this.#listeners)) call(value, before.value)
      return value
    } catch (error) {
      if (!before) throw error
      this.#readAt = clock.monotonic()
      onFailure(error)
      return before.value
    }
  }
}
