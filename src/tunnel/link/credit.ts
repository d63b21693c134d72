import type { Carrier } from './link.ts'

/** Bytes that each end of a channel may send before the first CREDIT packet. */
export const initialWindowBytes = 1024 * 1024

/** A window that is used up in fewer round trips is too small for the path. */
const minRoundTrips = 4

/** What a receive window needs to know about its link. */
export interface WindowContext {
  readonly maxWindowBytes: number
  readonly roundTripMs: number
  nowMs(): number
}

/** The receive window of a channel. It grows while the reader keeps up with a long path. */
export class ReceiveWindow {
  readonly #context: WindowContext
  #size = initialWindowBytes
  #open = initialWindowBytes
  #ungranted = 0
  #roundBytes = 0
  #roundStart: number

  constructor(context: WindowContext) {
    this.#context = context
    this.#roundStart = context.nowMs()
  }

  /** Returns whether the peer was allowed to send this much. */
  received(bytes: number): boolean {
    this.#open -= bytes
    return this.#open >= 0
  }

  /** The reader has consumed bytes: returns how many to grant now, 0 while it is not worth a packet. */
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
    const { maxWindowBytes, roundTripMs } = this.#context
    const now = this.#context.nowMs()
    const isShort = now - this.#roundStart < minRoundTrips * roundTripMs
    this.#roundStart = now
    this.#roundBytes = 0
    if (!isShort || this.#size >= maxWindowBytes) return 0
    const before = this.#size
    this.#size = Math.min(2 * before, maxWindowBytes)
    return this.#size - before
  }
}

/** A channel without credit whose reader has fallen behind. */
export interface SlowChannel {
  /** Bytes that its reader has consumed so far. */
  readonly consumedBytes: number
}

interface SlowReader {
  /** Consumed bytes at the last assessment. */
  consumedBytes: number
  intervalsLeft: number
  /** Bytes consumed between the last two assessments; absent before the first. */
  progress: number | undefined
  /** Too slow: the peer is not throttled because of it. */
  isIgnored: boolean
}

/** How often a throttled peer is allowed a little, and how much. */
const intervalMs = 50
const intervalBytes = 64 * 1024
/** A reader that is this many times slower than the average is ignored. */
const tooSlowFactor = 8

/**
 * Throttles a peer without credit. It can be throttled only as a whole, so this is done for readers that read, and never
 * fully while there are other channels. A reader that has stopped is ignored: it fills its own buffer and delays no other.
 */
export class BackPressure {
  readonly #carrier: Carrier
  readonly #isOnlyChannel: () => boolean
  /** A busy machine runs no reader for a while, so a reader is assessed over several intervals. */
  readonly #intervalsPerAssessment: number
  readonly #readers = new Map<SlowChannel, SlowReader>()
  #isThrottled = false
  #timer: NodeJS.Timeout | undefined

  constructor(carrier: Carrier, isOnlyChannel: () => boolean, stoppedReaderMs: number) {
    this.#carrier = carrier
    this.#isOnlyChannel = isOnlyChannel
    this.#intervalsPerAssessment = Math.max(1, Math.round(stoppedReaderMs / intervalMs))
  }

  /** A channel holds too many bytes. */
  add(channel: SlowChannel): void {
    if (this.#readers.has(channel)) return
    this.#readers.set(channel, {
      consumedBytes: channel.consumedBytes,
      intervalsLeft: this.#intervalsPerAssessment,
      progress: undefined,
      isIgnored: false,
    })
    this.#throttle()
    this.#timer ??= setInterval(() => this.#check(), intervalMs).unref()
  }

  /** A channel is well below its limit again, or closed. */
  remove(channel: SlowChannel): void {
    if (!this.#readers.delete(channel)) return
    if (this.#readers.size === 0) this.stop()
    else this.#throttle()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#readers.clear()
    this.#throttle()
  }

  #throttle(): void {
    const isOn = [...this.#readers.values()].some(({ isIgnored }) => !isIgnored)
    if (this.#isThrottled === isOn) return
    this.#isThrottled = isOn
    this.#carrier.throttle(isOn)
  }

  #check(): void {
    const isOnlyChannel = this.#isOnlyChannel()
    for (const [channel, reader] of this.#readers) this.#assess(channel, reader, isOnlyChannel)
    this.#throttle()
    if (this.#isThrottled && !isOnlyChannel) this.#carrier.allow(intervalBytes)
  }

  #assess(channel: SlowChannel, reader: SlowReader, isOnlyChannel: boolean): void {
    reader.intervalsLeft--
    if (reader.intervalsLeft > 0) return
    reader.intervalsLeft = this.#intervalsPerAssessment
    reader.progress = channel.consumedBytes - reader.consumedBytes
    reader.consumedBytes = channel.consumedBytes
    const isTooSlow = reader.progress < this.#averageProgress() / tooSlowFactor
    reader.isIgnored = !isOnlyChannel && (reader.progress === 0 || isTooSlow)
  }

  #averageProgress(): number {
    const known = [...this.#readers.values()].flatMap(({ progress }) => progress ?? [])
    return known.reduce((sum, bytes) => sum + bytes, 0) / known.length
  }
}
