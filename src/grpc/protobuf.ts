import { isUtf8 } from 'node:buffer'
import { SallyportError, type Work } from '../core/index.ts'

/** Wire types of protobuf. */
export const wireType = {
  varint: 0,
  fixed64: 1,
  bytes: 2,
  groupStart: 3,
  groupEnd: 4,
  fixed32: 5,
} as const

/** A message is malformed, or has a number that its field cannot hold. The messages are those of protobuf for Go. */
export class ProtobufError extends SallyportError {
  readonly code = 'PROTOBUF_INVALID'
}

const endOfInput = () => new ProtobufError('unexpected EOF')

/** A field number and a wire type, as they precede the value. */
export const tagOf = (field: number, type: number): number => field * 8 + type

/** Unknown groups are skipped up to this depth; proto3 has none. */
const maxGroupDepth = 100
const maxVarintBytes = 10
/** Up to this length a loop is faster than a call into Node.js. */
const maxLoopTextBytes = 24

/** Reads the fields of a message from a part of a buffer, without copying. */
export class ProtobufReader {
  #bytes: Buffer
  #end: number
  #at: number
  /** The unsigned halves of the last varint. */
  #low = 0
  #high = 0
  readonly work: Work | undefined

  /** Each field is a token of `work`, if given. */
  constructor(bytes: Buffer, work?: Work, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.work = work
    this.#at = start
    this.#end = end
  }

  /** Reads another part of memory from now on. */
  reset(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  /** Where the next byte is read. */
  get position(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end
  }

  /** The next field's number times eight, plus its wire type. */
  tag(): number {
    this.work?.spend('tokens', 1)
    this.#varint()
    if (this.#high !== 0 || this.#low < 8)
      throw new ProtobufError(`proto: illegal tag ${this.#low >>> 3}`)
    return this.#low
  }

  /** A signed 64-bit integer; not exact beyond 53 bits. */
  int64(): number {
    this.#varint()
    return (this.#high | 0) * 2 ** 32 + this.#low
  }

  /** A signed 64-bit integer. */
  int64BigInt(): bigint {
    this.#varint()
    return BigInt.asIntN(64, (BigInt(this.#high) << 32n) | BigInt(this.#low))
  }

  /** An unsigned integer; above 2^53 it is only known to be too large. */
  uint64(): number {
    this.#varint()
    return this.#high * 2 ** 32 + this.#low
  }

  /** As `uint64`, but undefined if the input ends within the number. */
  partialUint64(): number | undefined {
    return this.#readVarint() ? this.#high * 2 ** 32 + this.#low : undefined
  }

  /** An unsigned integer of at most 53 bits. */
  safeUint(): number {
    const value = this.uint64()
    if (!Number.isSafeInteger(value)) throw new ProtobufError('proto: integer overflow')
    return value
  }

  /** A signed 32-bit integer. */
  int32(): number {
    this.#varint()
    return this.#low | 0
  }

  bool(): boolean {
    this.#varint()
    return this.#low !== 0 || this.#high !== 0
  }

  /** A reader of the embedded message. */
  message(): ProtobufReader {
    const start = this.#enter()
    return new ProtobufReader(this.#bytes, this.work, start, this.#at)
  }

  /** Bytes in the memory of the message. */
  bytes(): Buffer {
    const start = this.#enter()
    return this.#bytes.subarray(start, this.#at)
  }

  text(): string {
    const start = this.#enter()
    if (this.#at - start <= maxLoopTextBytes) {
      let text = ''
      let at = start
      for (; at < this.#at; at++) {
        const byte = this.#bytes[at] ?? 0
        if (byte > 0x7f) break
        text += String.fromCharCode(byte)
      }
      if (at === this.#at) return text
    }
    const bytes = this.#bytes.subarray(start, this.#at)
    if (!isUtf8(bytes)) throw new ProtobufError('proto: a string is not valid UTF-8')
    return bytes.toString('utf8')
  }

  /** Skips the value of an unknown field. */
  skip(type: number): void {
    let open = 0
    let next = type
    for (;;) {
      if (next === wireType.groupStart) open++
      else if (next === wireType.groupEnd) open--
      else this.#skipScalar(next)
      if (open < 0) throw new ProtobufError('proto: unexpected end of group')
      if (open === 0) return
      if (open > maxGroupDepth) throw new ProtobufError('proto: exceeded max depth')
      next = this.tag() & 7
    }
  }

  #skipScalar(type: number): void {
    if (type === wireType.varint) this.#varint()
    else if (type === wireType.bytes) this.#enter()
    else if (type === wireType.fixed64) this.#advance(8)
    else if (type === wireType.fixed32) this.#advance(4)
    else throw new ProtobufError(`proto: illegal wireType ${type}`)
  }

  /** Skips a length and the bytes behind it; returns where these start. */
  #enter(): number {
    this.#varint()
    const start = this.#at
    if (this.#high !== 0) throw endOfInput()
    this.#advance(this.#low)
    return start
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw endOfInput()
    this.#at += count
  }

  #varint(): void {
    if (!this.#readVarint()) throw endOfInput()
  }

  /** Returns false if the input ends within the number. */
  #readVarint(): boolean {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 7 * maxVarintBytes; shift += 7) {
      if (this.#at >= this.#end) return false
      const byte = this.#bytes[this.#at++] ?? 0
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (shift - 32)
      if (byte < 0x80) {
        if (shift === 63 && byte > 1) break
        this.#low = low >>> 0
        this.#high = high >>> 0
        return true
      }
    }
    throw new ProtobufError('proto: integer overflow')
  }
}

/** The length of a number on the wire. @throws ProtobufError if it is not an exact integer of at least 0 */
export function varintBytes(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new ProtobufError(`proto: cannot encode the number ${value}`)
  let bytes = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

/** Writes a number of which `varintBytes` is the length; returns the position behind it. */
export function writeVarint(out: Buffer, at: number, value: number): number {
  let next = at
  let rest = value
  while (rest >= 0x80) {
    out[next++] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  out[next++] = rest
  return next
}

const noBytes = Buffer.alloc(0)

/** A field with an unsigned integer; empty for 0, which proto3 leaves out. */
export function uintField(field: number, value: number): Buffer {
  if (value === 0) return noBytes
  const tag = tagOf(field, wireType.varint)
  const out = Buffer.allocUnsafe(varintBytes(tag) + varintBytes(value))
  writeVarint(out, writeVarint(out, 0, tag), value)
  return out
}

/** A field with a signed 64-bit integer; empty for 0. */
export function int64Field(field: number, value: bigint): Buffer {
  if (value === 0n) return noBytes
  const tag = tagOf(field, wireType.varint)
  const out = Buffer.allocUnsafe(varintBytes(tag) + maxVarintBytes)
  let at = writeVarint(out, 0, tag)
  let rest = BigInt.asUintN(64, value)
  for (; rest >= 0x80n; rest >>= 7n) out[at++] = Number(rest & 0x7fn) | 0x80
  out[at++] = Number(rest)
  return out.subarray(0, at)
}

/** A field with bytes or an embedded message, in parts; also if they are empty. */
export function bytesField(field: number, ...parts: readonly Buffer[]): Buffer {
  let length = 0
  for (const part of parts) length += part.length
  const tag = tagOf(field, wireType.bytes)
  const out = Buffer.allocUnsafe(varintBytes(tag) + varintBytes(length) + length)
  let at = writeVarint(out, writeVarint(out, 0, tag), length)
  for (const part of parts) at += part.copy(out, at)
  return out
}

/** A field with a string; empty for '', which proto3 leaves out. */
export const textField = (field: number, text: string): Buffer =>
  text === '' ? noBytes : bytesField(field, Buffer.from(text))
