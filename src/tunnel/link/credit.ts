import type { Carrier } from './link.ts'

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
