import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'

/** Below this size compression costs more than it saves. */
const gzipFrom = 1400

/** A document that is built when first asked for and kept as bytes. */
export class CachedDocument {
  readonly #build: () => Buffer
  #bytes: Buffer | undefined
  #gzipped: Buffer | undefined
  #hash: string | undefined

  constructor(build: () => Buffer) {
    this.#build = build
  }

  /** A document whose bytes are JSON. */
  static json(build: () => unknown): CachedDocument {
    return new CachedDocument(() => Buffer.from(JSON.stringify(build())))
  }

  get bytes(): Buffer {
    this.#bytes ??= this.#build()
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
