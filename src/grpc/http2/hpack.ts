import { Http2Error } from './frames.ts'
import { maxHeaderListBytes, maxTableBytes } from './limits.ts'

/** Code length of each byte (RFC 7541, appendix B); the code is canonical, so the lengths define it. */
// biome-ignore format: a table of sixteen columns
const bitLengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
]
const maxCodeBits = 30

/** The first code of each length, and the bytes with codes of that length, in order. */
const codes = Array.from({ length: maxCodeBits + 1 }, (_, length) => ({
  first: 0,
  bytes: bitLengths.flatMap((bits, byte) => (bits === length ? [byte] : [])),
}))
for (const [length, code] of codes.entries()) {
  const shorter = codes[length - 1]
  if (shorter) code.first = (shorter.first + shorter.bytes.length) * 2
}

/** Decodes a Huffman-encoded string (RFC 7541 §5.2). */
function decodeHuffman(coded: Buffer): string {
  const out: number[] = []
  let code = 0
  let length = 0
  for (const byte of coded)
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1)
      length++
      const candidates = codes[length]
      if (!candidates) throw new Http2Error('COMPRESSION_ERROR', 'invalid Huffman code')
      const decoded = candidates.bytes[code - candidates.first]
      if (decoded === undefined) continue
      out.push(decoded)
      code = 0
      length = 0
    }
  // The rest is padding: fewer than eight bits, all set.
  if (length > 7 || code !== 2 ** length - 1)
    throw new Http2Error('COMPRESSION_ERROR', 'invalid Huffman padding')
  return Buffer.from(out).toString('latin1')
}

/** The static table; its first index is 1 (RFC 7541, appendix A). */
const staticTable: readonly (readonly [string, string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
]

/** A header field: name and value. */
export type HeaderField = readonly [name: string, value: string]

const sizeOf = ([name, value]: HeaderField): number => name.length + value.length + 32

/** Decodes the field blocks of one connection (RFC 7541), in order. */
export class HpackDecoder {
  /** Newest first. */
  #table: HeaderField[] = []
  #tableBytes = 0
  #tableLimit = maxTableBytes
  #block: Buffer = Buffer.alloc(0)
  #position = 0
  /** Size of the last field section as HTTP/2 counts it (RFC 9113 §10.5.1). */
  listBytes = 0

  decode(block: Buffer): HeaderField[] {
    this.#block = block
    this.#position = 0
    const fields: HeaderField[] = []
    let bytes = 0
    while (this.#position < block.length) {
      const field = this.#next(fields.length === 0)
      if (!field) continue
      bytes += sizeOf(field)
      if (bytes > maxHeaderListBytes)
        throw new Http2Error('ENHANCE_YOUR_CALM', 'header fields are too long')
      fields.push(field)
    }
    this.listBytes = bytes
    return fields
  }

  #next(isFirst: boolean): HeaderField | undefined {
    const first = this.#block[this.#position] ?? 0
    if (first >= 0x80) return this.#entry(this.#integer(7))
    if (first >= 0x40) {
      const field = this.#literal(6)
      this.#add(field)
      return field
    }
    if (first >= 0x20) {
      if (!isFirst)
        throw new Http2Error('COMPRESSION_ERROR', 'table size update after a header field')
      this.#resize(this.#integer(5))
      return undefined
    }
    return this.#literal(4)
  }

  #literal(prefixBits: number): HeaderField {
    const index = this.#integer(prefixBits)
    const name = index === 0 ? this.#string() : this.#entry(index)[0]
    return [name, this.#string()]
  }

  #entry(index: number): HeaderField {
    const field =
      index <= staticTable.length
        ? staticTable[index - 1]
        : this.#table[index - staticTable.length - 1]
    if (!field) throw new Http2Error('COMPRESSION_ERROR', 'invalid table index')
    return field
  }

  #add(field: HeaderField): void {
    this.#table.unshift(field)
    this.#tableBytes += sizeOf(field)
    this.#evict()
  }

  #resize(limit: number): void {
    if (limit > maxTableBytes)
      throw new Http2Error('COMPRESSION_ERROR', 'table size update above the limit')
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

  /** An integer with a prefix of `prefixBits` (RFC 7541 §5.1). */
  #integer(prefixBits: number): number {
    const mask = 2 ** prefixBits - 1
    let byte = this.#block[this.#position++]
    let value = (byte ?? 0) & mask
    if (byte !== undefined && value < mask) return value
    for (let unit = 1; byte !== undefined && unit <= 128 ** 3; unit *= 128) {
      byte = this.#block[this.#position++]
      if (byte === undefined) break
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
    }
    throw new Http2Error('COMPRESSION_ERROR', 'invalid integer in a field block')
  }

  #string(): string {
    const isHuffman = (this.#block[this.#position] ?? 0) >= 0x80
    const length = this.#integer(7)
    const start = this.#position
    if (length > this.#block.length - start)
      throw new Http2Error('COMPRESSION_ERROR', 'truncated string in a field block')
    this.#position += length
    const bytes = this.#block.subarray(start, this.#position)
    return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1')
  }
}

/** Fields that no endpoint or proxy may index (RFC 7541 §7.1.3). */
const sensitive: ReadonlySet<string> = new Set(['authorization'])

function encodeInteger(value: number, prefixBits: number, pattern: number): number[] {
  const mask = 2 ** prefixBits - 1
  if (value < mask) return [pattern | value]
  const out = [pattern | mask]
  let rest = value - mask
  while (rest >= 128) {
    out.push((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
  return out
}

const encodeString = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([Buffer.from(encodeInteger(bytes.length, 7, 0)), bytes])
}

/** Encodes a field block of literals only: long-lived streams send few headers, so a table would gain nothing. */
export const encodeHeaders = (fields: readonly HeaderField[]): Buffer =>
  Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([sensitive.has(name) ? 0x10 : 0x00]),
      encodeString(name),
      encodeString(value),
    ]),
  )
