import type { Carrier } from './carrier.ts'

/** A channel whose other end knows no credit. */
export interface PressedChannel {
  /** Bytes that its reader has consumed so far. */
  readonly consumedBytes: number
}

/** What is known of a channel that holds more than it should. */
interface Reader {
  /** What it had consumed when it was last judged. */
  consumedBytes: number
  slicesLeft: number
  /** What it consumed in the time before that; nothing until it was judged once. */
  progress: number | undefined
  isLeftBehind: boolean
}

/** How often the other end is allowed a little, and how much. */
const sliceMs = 50
const sliceBytes = 64 * 1024
/** A reader that is this many times slower than the others is left behind. */
const tooSlowFactor = 8

/**
 * Slows an end down that knows no credit. It can only be slowed down as a whole, so that is done for readers that
 * read, and never fully while anybody else is there; one that has stopped holds up nobody and fills its own buffer.
 */
export class Pressure {
  readonly #carrier: Carrier
  readonly #isAlone: () => boolean
  /** How long a reader is watched before it is judged: a busy machine lets nobody run for a while. */
  readonly #slicesToJudge: number
  readonly #readers = new Map<PressedChannel, Reader>()
  #isThrottled = false
  #timer: NodeJS.Timeout | undefined

  constructor(carrier: Carrier, isAlone: () => boolean, patienceMs: number) {
    this.#carrier = carrier
    this.#isAlone = isAlone
    this.#slicesToJudge = Math.max(1, Math.round(patienceMs / sliceMs))
  }

  /** A channel holds more than it should. */
  raise(channel: PressedChannel): void {
    if (this.#readers.has(channel)) return
    this.#readers.set(channel, {
      consumedBytes: channel.consumedBytes,
      slicesLeft: this.#slicesToJudge,
      progress: undefined,
      isLeftBehind: false,
    })
    this.#throttle()
    this.#timer ??= setInterval(() => this.#look(), sliceMs).unref()
  }

  /** A channel is well below its limit again, or gone. */
  lower(channel: PressedChannel): void {
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
    const isOn = [...this.#readers.values()].some(({ isLeftBehind }) => !isLeftBehind)
    if (this.#isThrottled === isOn) return
    this.#isThrottled = isOn
    this.#carrier.throttle(isOn)
  }

  #look(): void {
    const isAlone = this.#isAlone()
    for (const [channel, reader] of this.#readers) this.#judge(channel, reader, isAlone)
    this.#throttle()
    if (this.#isThrottled && !isAlone) this.#carrier.allow(sliceBytes)
  }

  #judge(channel: PressedChannel, reader: Reader, isAlone: boolean): void {
    reader.slicesLeft--
    if (reader.slicesLeft > 0) return
    reader.slicesLeft = this.#slicesToJudge
    reader.progress = channel.consumedBytes - reader.consumedBytes
    reader.consumedBytes = channel.consumedBytes
    const isTooSlow = reader.progress < this.#usualProgress() / tooSlowFactor
    reader.isLeftBehind = !isAlone && (reader.progress === 0 || isTooSlow)
  }

  #usualProgress(): number {
    const known = [...this.#readers.values()].flatMap(({ progress }) => progress ?? [])
    return known.reduce((sum, bytes) => sum + bytes, 0) / known.length
  }
}
