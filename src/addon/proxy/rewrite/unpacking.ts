import { Transform, type TransformCallback } from 'node:stream'
import { createBrotliDecompress, createInflate, createInflateRaw } from 'node:zlib'

/** Unpacks in a way that its first bytes decide, and no faster than it is read: a few bytes may stand for many. */
export class Unpacking extends Transform {
  readonly #choose: (first: Buffer) => Transform
  #inner: Transform | undefined

  constructor(choose: (first: Buffer) => Transform) {
    super()
    this.#choose = choose
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#inner ??= this.#open(chunk)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
      return
    }
    this.#inner.write(chunk, () => done())
  }

  override _read(size: number): void {
    this.#inner?.resume()
    super._read(size)
  }

  override _flush(done: TransformCallback): void {
    if (!this.#inner) {
      done()
      return
    }
    this.#inner.once('end', () => done())
    this.#inner.end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#inner?.destroy()
    done(error)
  }

  #open(first: Buffer): Transform {
    const inner = this.#choose(first)
    inner.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) inner.pause()
    })
    inner.on('error', (error) => this.destroy(error))
    return inner
  }
}

/** `deflate` in both forms that are sent under that name: with the head of zlib, and without. */
export function inflateOf(first: Buffer): Transform {
  const [method = 0, flags = 0] = first
  // RFC 1950 section 2.2: method 8, and the two bytes together are a multiple of 31.
  const isZlib = (method & 0x0f) === 8 && (method * 256 + flags) % 31 === 0
  return isZlib ? createInflate() : createInflateRaw()
}

/** What programs choose by themselves: 4 MiB. Whoever sends a page can ask for as much memory as it says here. */
const widestWindow = 22

/** `br`, unless its first byte asks for a window that no page needs. */
export function brotliOf([first = 0]: Buffer): Transform {
  if (windowBits(first) <= widestWindow) return createBrotliDecompress()
  throw new Error('the page is packed with too large a window')
}

/** RFC 7932 section 9.1; the lowest bits come first. */
function windowBits(first: number): number {
  if ((first & 1) === 0) return 16
  const wide = (first >> 1) & 7
  if (wide !== 0) return 17 + wide
  const narrow = (first >> 4) & 7
  return narrow === 0 ? 17 : 8 + narrow
}
