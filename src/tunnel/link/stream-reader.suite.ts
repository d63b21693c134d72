import { createHash } from 'node:crypto'
import type { ByteStream } from './byte-stream.ts'

/** A reader of a stream for tests, which remembers what it was told. */
export class StreamReader {
  readonly stream: ByteStream
  readonly told: string[] = []
  readonly #hash = createHash('sha256')
  readonly #waiting: { readonly holds: () => boolean; readonly resolve: () => void }[] = []
  bytes = 0
  text = ''
  isFinished = false
  error: Error | undefined
  isClosed = false

  /** `isReading: false` never says that anything was consumed. */
  constructor(stream: ByteStream, { isReading = true } = {}) {
    this.stream = stream
    stream.start({
      data: (chunk) => {
        this.bytes += chunk.length
        if (this.bytes < 10_000) this.text += chunk.toString()
        this.#hash.update(chunk)
        if (isReading) stream.consumed(chunk.length)
        this.#look('data')
      },
      finished: () => {
        this.isFinished = true
        this.#look('finished')
      },
      drained: () => this.#look('drained'),
      closed: (error) => {
        this.isClosed = true
        this.error = error
        this.#look('closed')
      },
    })
  }

  #look(what: string): void {
    if (this.told.at(-1) !== what) this.told.push(what)
    for (const waiting of this.#waiting.splice(0))
      if (waiting.holds()) waiting.resolve()
      else this.#waiting.push(waiting)
  }

  until(holds: (reader: this) => boolean): Promise<void> {
    if (holds(this)) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.push({ holds: () => holds(this), resolve })
    })
  }

  readonly closed = (): Promise<void> => this.until((reader) => reader.isClosed)

  digest(): string {
    return this.#hash.digest('hex')
  }
}

/** Sends back whatever comes, and ends when the other side ends. */
export function echo(stream: ByteStream): void {
  stream.start({
    data: (chunk) => {
      stream.write(chunk)
      stream.consumed(chunk.length)
    },
    finished: () => stream.finish(),
    drained: () => {},
    closed: () => {},
  })
}
