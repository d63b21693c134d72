import type { Clock } from '../../core/index.ts'
import {
  type Frame,
  frameFlag,
  frameHeader,
  frameType,
  Http2Error,
  withoutPadding,
} from './frames.ts'
import {
  maxBlockBytes,
  maxBlockPieces,
  maxDecodedHeaderBytes,
  maxHeaderListBytes,
  maxTableBytes,
  ratePeriodMs,
} from './limits.ts'
import { RateLimit } from './rate-limit.ts'

/** How many bits stand for each byte (RFC 7541, appendix B); the code is canonical, so that is all there is to know. */
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
const longestCode = 30

/** The first code of each length, and the bytes that have codes of that length, in order. */
const codes = Array.from({ length: longestCode + 1 }, (_, length) => ({
  first: 0,
  bytes: bitLengths.flatMap((bits, byte) => (bits === length ? [byte] : [])),
}))
for (const [length, code] of codes.entries()) {
  const shorter = codes[length - 1]
  if (shorter) code.first = (shorter.first + shorter.bytes.length) * 2
}

/** Decodes a Huffman-coded text (RFC 7541 §5.2). */
function decodeHuffman(coded: Buffer): string {
  const out: number[] = []
  let code = 0
  let length = 0
  for (const byte of coded)
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1)
      length++
      const candidates = codes[length]
      if (!candidates) throw new Http2Error('COMPRESSION_ERROR', 'a text is coded wrongly')
      const decoded = candidates.bytes[code - candidates.first]
      if (decoded === undefined) continue
      out.push(decoded)
      code = 0
      length = 0
    }
  // What is left over is padding: fewer than eight bits, all of them set.
  if (length > 7 || code !== 2 ** length - 1)
    throw new Http2Error('COMPRESSION_ERROR', 'a text is padded wrongly')
  return Buffer.from(out).toString('latin1')
}

/** The header fields that HPACK numbers from 1 (RFC 7541, appendix A). */
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

/** Decodes the header blocks of one connection (RFC 7541), in their order. */
export class HpackDecoder {
  /** Newest first. */
  #table: HeaderField[] = []
  #tableBytes = 0
  #tableLimit = maxTableBytes
  #block: Buffer = Buffer.alloc(0)
  #position = 0
  /** The size of the last list of fields, as HTTP/2 counts it (RFC 9113 §10.5.1). */
  listBytes = 0

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
    this.listBytes = bytes
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

/** Neither end is to remember these, nor is a proxy between them (RFC 7541 §7.1.3). */
const sensitive: ReadonlySet<string> = new Set(['authorization'])

function integer(value: number, prefixBits: number, pattern: number): number[] {
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

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([Buffer.from(integer(bytes.length, 7, 0)), bytes])
}

/** A header block of literals only: a link sends two in its life, so there is nothing to gain from a table. */
export const encodeHeaders = (fields: readonly HeaderField[]): Buffer =>
  Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([sensitive.has(name) ? 0x10 : 0x00]),
      text(name),
      text(value),
    ]),
  )

/** The parts of a HEADERS frame and of the CONTINUATION frames that it needs. */
export function headerFrames(
  streamId: number,
  fields: readonly HeaderField[],
  isLast: boolean,
  maxFrameBytes: number,
): Buffer[] {
  const block = encodeHeaders(fields)
  const parts: Buffer[] = []
  for (let start = 0; start === 0 || start < block.length; start += maxFrameBytes) {
    const piece = block.subarray(start, start + maxFrameBytes)
    const isWhole = start + piece.length >= block.length
    const flags =
      (isWhole ? frameFlag.END_HEADERS : 0) | (isLast && start === 0 ? frameFlag.END_STREAM : 0)
    const type = start === 0 ? frameType.HEADERS : frameType.CONTINUATION
    parts.push(frameHeader(type, flags, streamId, piece.length), piece)
  }
  return parts
}

/** A whole block of headers. */
export interface HeaderBlock {
  readonly streamId: number
  readonly fields: readonly HeaderField[]
  readonly isLast: boolean
}

/** Puts blocks of headers together from their frames, and unpacks them. */
export class HeaderAssembly {
  readonly #decoder = new HpackDecoder()
  /** One byte of a block stands for up to 4 KiB of fields, so the fields are counted as well. */
  readonly #decoded: RateLimit
  #open: { streamId: number; isLast: boolean; pieces: Buffer[]; bytes: number } | undefined

  constructor(clock: Clock) {
    this.#decoded = new RateLimit(maxDecodedHeaderBytes, ratePeriodMs, clock)
  }

  /** Takes any frame; a block that has begun allows no other frame in between. */
  accept(frame: Frame): HeaderBlock | undefined {
    if (frame.type === frameType.HEADERS) return this.#begin(frame)
    if (frame.type === frameType.CONTINUATION) return this.#continue(frame)
    this.mustBeWhole()
    return undefined
  }

  mustBeWhole(): void {
    if (this.#open) throw new Http2Error('PROTOCOL_ERROR', 'its headers are interrupted')
  }

  #begin({ flags, streamId, payload }: Frame): HeaderBlock | undefined {
    this.mustBeWhole()
    const content = withoutPadding(payload, flags)
    const skipped = (flags & frameFlag.PRIORITY) === 0 ? 0 : 5
    const isLast = (flags & frameFlag.END_STREAM) !== 0
    this.#open = { streamId, isLast, pieces: [], bytes: 0 }
    return this.#add(content.subarray(skipped), flags)
  }

  #continue({ flags, streamId, payload }: Frame): HeaderBlock | undefined {
    if (this.#open?.streamId !== streamId)
      throw new Http2Error('PROTOCOL_ERROR', 'it continues headers that it did not begin')
    return this.#add(payload, flags)
  }

  #add(piece: Buffer, flags: number): HeaderBlock | undefined {
    const open = this.#open
    if (!open) return undefined
    open.pieces.push(piece)
    open.bytes += piece.length
    if (open.bytes > maxBlockBytes || open.pieces.length > maxBlockPieces)
      throw new Http2Error('ENHANCE_YOUR_CALM', 'its headers are too long')
    if ((flags & frameFlag.END_HEADERS) === 0) return undefined
    this.#open = undefined
    const fields = this.#decoder.decode(Buffer.concat(open.pieces))
    if (!this.#decoded.allows(this.#decoder.listBytes))
      throw new Http2Error('ENHANCE_YOUR_CALM', 'it sends too many headers')
    return { streamId: open.streamId, fields, isLast: open.isLast }
  }
}
