import { Http2Error } from './http2-error.ts'
import { decodeHuffman } from './huffman.ts'
import { staticTable } from './static-table.ts'

/** A header field: name and value. */
export type HeaderField = readonly [name: string, value: string]

/** What the other end's encoder may remember; HTTP/2's default. */
const maxTableBytes = 4_096
/** Headers that are longer than this, once unpacked, are an attack. */
const maxHeaderListBytes = 64 * 1024

const sizeOf = ([name, value]: HeaderField): number => name.length + value.length + 32

/** Decodes the header blocks of one connection (RFC 7541), in their order. */
export class HpackDecoder {
  /** Newest first. */
  #table: HeaderField[] = []
  #tableBytes = 0
  #tableLimit = maxTableBytes
  #block: Buffer = Buffer.alloc(0)
  #position = 0

  decode(block: Buffer): HeaderField[] {
    this.#block = block
    this.#position = 0
    const fields: HeaderField[] = []
    let bytes = 0
    while (this.#position < block.length) {
      const field = this.#next()
      if (!field) continue
      bytes += sizeOf(field)
      if (bytes > maxHeaderListBytes)
        throw new Http2Error('ENHANCE_YOUR_CALM', 'its headers are too long')
      fields.push(field)
    }
    return fields
  }

  #next(): HeaderField | undefined {
    const first = this.#block[this.#position] ?? 0
    if (first >= 0x80) return this.#entry(this.#integer(7))
    if (first >= 0x40) {
      const field = this.#literal(6)
      this.#remember(field)
      return field
    }
    if (first >= 0x20) {
      this.#resize(this.#integer(5))
      return undefined
    }
    return this.#literal(4)
  }

  #literal(prefixBits: number): HeaderField {
    const index = this.#integer(prefixBits)
    const name = index === 0 ? this.#text() : this.#entry(index)[0]
    return [name, this.#text()]
  }

  #entry(index: number): HeaderField {
    const field =
      index <= staticTable.length
        ? staticTable[index - 1]
        : this.#table[index - staticTable.length - 1]
    if (!field) throw new Http2Error('COMPRESSION_ERROR', 'a header has a number that is not known')
    return field
  }

  #remember(field: HeaderField): void {
    this.#table.unshift(field)
    this.#tableBytes += sizeOf(field)
    this.#evict()
  }

  #resize(limit: number): void {
    if (limit > maxTableBytes)
      throw new Http2Error('COMPRESSION_ERROR', 'it wants more memory than it was granted')
    this.#tableLimit = limit
    this.#evict()
  }

  #evict(): void {
    while (this.#tableBytes > this.#tableLimit) {
      const oldest = this.#table.pop()
      if (!oldest) return
      this.#tableBytes -= sizeOf(oldest)
    }
  }

  /** An integer with a prefix of so many bits (RFC 7541 §5.1). */
  #integer(prefixBits: number): number {
    const mask = 2 ** prefixBits - 1
    let value = (this.#block[this.#position++] ?? 0) & mask
    if (value < mask) return value
    for (let unit = 1; unit <= 128 ** 3; unit *= 128) {
      const byte = this.#block[this.#position++]
      if (byte === undefined) break
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
    }
    throw new Http2Error('COMPRESSION_ERROR', 'a number in its headers is too long')
  }

  #text(): string {
    const isHuffman = (this.#block[this.#position] ?? 0) >= 0x80
    const length = this.#integer(7)
    const start = this.#position
    if (length > this.#block.length - start)
      throw new Http2Error('COMPRESSION_ERROR', 'a header is cut off')
    this.#position += length
    const bytes = this.#block.subarray(start, this.#position)
    return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1')
  }
}
