import type { Carrier } from './carrier.ts'

/** A channel whose other end knows no credit. */
export interface PressedChannel {
  /** Bytes that its reader has consumed so far. */
  readonly consumedBytes: number
}

/** How often it is looked who still reads, and what the other end may send in the meantime. */
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
  /** With what each had consumed at the last look. */
  readonly #pressing = new Map<PressedChannel, number>()
  readonly #leftBehind = new Set<PressedChannel>()
  #timer: NodeJS.Timeout | undefined

  constructor(carrier: Carrier, isAlone: () => boolean) {
    this.#carrier = carrier
    this.#isAlone = isAlone
  }

  /** A channel holds more than it should. */
  raise(channel: PressedChannel): void {
    if (this.#pressing.has(channel) || this.#leftBehind.has(channel)) return
    this.#pressing.set(channel, channel.consumedBytes)
    if (this.#timer) return
    this.#carrier.throttle(true)
    this.#timer = setInterval(() => this.#look(), sliceMs).unref()
  }

  /** A channel is well below its limit again, or gone. */
  lower(channel: PressedChannel): void {
    this.#leftBehind.delete(channel)
    if (this.#pressing.delete(channel) && this.#pressing.size === 0) this.stop()
  }

  stop(): void {
    if (!this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#carrier.throttle(false)
  }

  #look(): void {
    const isAlone = this.#isAlone()
    if (!isAlone) this.#leaveBehind()
    if (this.#pressing.size === 0) this.stop()
    else if (!isAlone) this.#carrier.allow(sliceBytes)
  }

  #leaveBehind(): void {
    const progress = [...this.#pressing].map(([channel, before]) => ({
      channel,
      bytes: channel.consumedBytes - before,
    }))
    const average = progress.reduce((sum, { bytes }) => sum + bytes, 0) / progress.length
    for (const { channel, bytes } of progress)
      if (bytes === 0 || bytes < average / tooSlowFactor) {
        this.#pressing.delete(channel)
        this.#leftBehind.add(channel)
      } else this.#pressing.set(channel, channel.consumedBytes)
  }
}
