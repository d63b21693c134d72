import { Http2Error } from './frames.ts'
import { isMalformed } from './headers.ts'
import type { HeaderField } from './hpack.ts'
import { maxRememberedResets } from './limits.ts'
import type { Http2Stream } from './stream.ts'

/** Remembers the last identifiers that were added. */
export class RecentIds {
  readonly #max: number
  /** Oldest first. */
  readonly #ids = new Set<number>()

  constructor(max: number) {
    this.#max = max
  }

  has(id: number): boolean {
    return this.#ids.has(id)
  }

  add(id: number): void {
    this.#ids.add(id)
    if (this.#ids.size <= this.#max) return
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest)
      return
    }
  }

  delete(id: number): void {
    this.#ids.delete(id)
  }
}

/** The streams of a connection and what is known about closed ones (RFC 9113 §5.1). */
export class StreamTable {
  readonly #streams = new Map<number, Http2Stream>()
  /** Streams that we have reset; their last frames may still be in flight. */
  readonly #resetIds = new RecentIds(maxRememberedResets)
  /** The highest identifier of a stream that was opened. */
  lastId = 0

  get size(): number {
    return this.#streams.size
  }

  get(id: number): Http2Stream | undefined {
    return this.#streams.get(id)
  }

  values(): IterableIterator<Http2Stream> {
    return this.#streams.values()
  }

  add(stream: Http2Stream): void {
    this.#streams.set(stream.id, stream)
  }

  delete(stream: Http2Stream): void {
    this.#streams.delete(stream.id)
  }

  /** We have reset the stream. */
  addReset(id: number): void {
    this.#resetIds.add(id)
  }

  /** The peer has reset the stream: none of its frames follow. */
  deleteReset(id: number): void {
    this.#resetIds.delete(id)
  }

  /** @throws Http2Error if the stream was never opened */
  checkOpened(id: number): void {
    if (id > this.lastId)
      throw new Http2Error('PROTOCOL_ERROR', 'peer sends on a stream that was never opened')
  }

  /** DATA and HEADERS of a closed stream are allowed only if we have reset it. @throws Http2Error */
  checkReset(id: number): void {
    this.checkOpened(id)
    if (!this.#resetIds.has(id))
      throw new Http2Error('STREAM_CLOSED', 'peer sends on a closed stream')
  }

  /** Of a request that we have reset, only trailers can have been in flight. @throws Http2Error */
  checkLateTrailers(id: number, fields: readonly HeaderField[], isEndStream: boolean): void {
    this.checkReset(id)
    if (!isEndStream || isMalformed(fields, 'trailers'))
      throw new Http2Error('PROTOCOL_ERROR', 'malformed trailers')
  }
}
