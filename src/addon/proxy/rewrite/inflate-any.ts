import { Transform, type TransformCallback } from 'node:stream'
import { createInflate, createInflateRaw } from 'node:zlib'

/** Undoes `deflate` in both forms that are sent under that name: with the head of zlib, and without. */
export class InflateAny extends Transform {
  #inner: Transform | undefined

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#inner ??= this.#open(chunk)
    this.#inner.write(chunk, () => done())
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
    const [method = 0, flags = 0] = first
    // RFC 1950 section 2.2: method 8, and the two bytes together are a multiple of 31.
    const isZlib = (method & 0x0f) === 8 && (method * 256 + flags) % 31 === 0
    const inner = isZlib ? createInflate() : createInflateRaw()
    inner.on('data', (chunk: Buffer) => this.push(chunk))
    inner.on('error', (error) => this.destroy(error))
    return inner
  }
}
