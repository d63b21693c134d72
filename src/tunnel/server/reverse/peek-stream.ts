import { HeldChunks } from '../../../core/index.ts'
import type { ByteStream, ByteStreamEvents } from '../../link/index.ts'

/** How much of a stream may be looked at, and for how long. */
export interface PeekLimits {
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** How looking at the first bytes ended: understood, or why not. */
export type PeekEnd = 'enough' | 'too-much' | 'timeout' | 'finished' | 'closed'

/** A stream whose first bytes can be looked at before somebody else reads it from its beginning. */
export class PeekStream implements ByteStream {
  readonly #stream: ByteStream
  readonly #held = new HeldChunks()
  #isLookDue = false
  #hasFinished = false
  #end: { readonly error?: Error } | undefined
  #events: ByteStreamEvents | undefined
  #look: (() => void) | undefined

  /** Starts the stream. */
  constructor(stream: ByteStream) {
    this.#stream = stream
    stream.start({
      data: (chunk) => this.#received(chunk),
      finished: () => {
        this.#hasFinished = true
        if (this.#events) this.#events.finished()
        else this.#look?.()
      },
      drained: () => this.#events?.drained(),
      closed: (error) => {
        this.#end = { ...(error && { error }) }
        if (this.#events) this.#events.closed(error)
        else this.#look?.()
      },
    })
  }

  get backlog(): number {
    return this.#stream.backlog
  }

  /** Shows the bytes so far to `isEnough`, again whenever there are more, until it says so or a limit is reached. */
  peek(isEnough: (bytes: Buffer) => boolean, limits: PeekLimits): Promise<PeekEnd> {
    return new Promise((resolve) => {
      const settle = (end: PeekEnd): void => {
        clearTimeout(timer)
        this.#look = undefined
        resolve(end)
      }
      const timer = setTimeout(() => settle('timeout'), limits.timeoutMs)
      this.#look = () => {
        if (this.#end) settle('closed')
        else if (this.#held.bytes > 0 && isEnough(this.#soFar())) settle('enough')
        else if (this.#hasFinished) settle('finished')
        else if (this.#held.bytes >= limits.maxBytes) settle('too-much')
      }
      this.#look()
    })
  }

  start(events: ByteStreamEvents): void {
    this.#events = events
    for (const chunk of this.#held.take()) events.data(chunk)
    if (this.#hasFinished) events.finished()
    if (this.#end) events.closed(this.#end.error)
  }

  write(chunk: Buffer): void {
    this.#stream.write(chunk)
  }

  consumed(bytes: number): void {
    this.#stream.consumed(bytes)
  }

  finish(): void {
    this.#stream.finish()
  }

  close(error?: Error): void {
    this.#stream.close(error)
  }

  #received(chunk: Buffer): void {
    if (this.#events) {
      this.#events.data(chunk)
      return
    }
    this.#held.push(chunk)
    if (this.#isLookDue) return
    // Once for all that arrives together: a peer that sends single bytes must not have all of them read again for each.
    this.#isLookDue = true
    setImmediate(() => {
      this.#isLookDue = false
      if (!this.#events) this.#look?.()
    })
  }

  #soFar(): Buffer {
    const bytes = Buffer.concat(this.#held.take())
    this.#held.push(bytes)
    return bytes
  }
}
