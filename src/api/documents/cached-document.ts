import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'

/** Below this size compression costs more than it saves. */
const gzipFrom = 1400

/** A document that is built when first asked for and kept as bytes. */
export class CachedDocument {
  readonly #build: () => unknown
  #bytes: Buffer | undefined
  #gzipped: Buffer | undefined
  #hash: string | undefined

  constructor(build: () => unknown) {
    this.#build = build
  }

  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(JSON.stringify(this.#build()))
    return this.#bytes
  }

  /** The bytes compressed, or undefined for a document that is too small for it. */
  get gzipped(): Buffer | undefined {
    if (this.bytes.length < gzipFrom) return undefined
    this.#gzipped ??= gzipSync(this.bytes)
    return this.#gzipped
  }

  /** Changes exactly when the document does. */
  get hash(): string {
    this.#hash ??= createHash('sha256').update(this.bytes).digest('hex').toUpperCase()
    return this.#hash
  }
}
