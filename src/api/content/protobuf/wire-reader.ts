import { isUtf8 } from 'node:buffer'
import { badRequest } from '../../../core/index.ts'

/** How a value is laid out on the wire. */
export const wire = {
  varint: 0,
  fixed64: 1,
  bytes: 2,
  groupStart: 3,
  groupEnd: 4,
  fixed32: 5,
} as const

/** Groups are not used by Kubernetes; they are skipped, but not without end. */
const maxGroupDepth = 100

const endOfInput = () => badRequest('unexpected EOF')

/** Reads protobuf's elements from the bytes between two offsets. */
export class WireReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  get done(): boolean {
    return this.#at >= this.#end
  }

  /** The next field number and wire type. */
  tag(): { number: number; type: number } {
    const { low, high } = this.#varint()
    const number = (low >>> 3) + (high & 0x7) * 2 ** 29
    const type = low & 0x7
    if (number === 0 || high > 0x7)
      throw badRequest(`proto: illegal tag ${number} (wire type ${type})`)
    return { number, type }
  }

  /** A signed 64-bit integer; not exact beyond 53 bits, which the check of structure refuses. */
  int64(): number {
    const { low, high } = this.#varint()
    return (high | 0) * 2 ** 32 + low
  }

  /** A signed 32-bit integer. */
  int32(): number {
    return this.#varint().low | 0
  }

  bool(): boolean {
    const { low, high } = this.#varint()
    return low !== 0 || high !== 0
  }

  /** The bytes of a length-delimited field, not copied. */
  bytes(): Buffer {
    const { low, high } = this.#varint()
    if (high !== 0 || low > this.#end - this.#at) throw endOfInput()
    const start = this.#at
    this.#at += low
    return this.#bytes.subarray(start, this.#at)
  }

  text(): string {
    const bytes = this.bytes()
    if (!isUtf8(bytes)) throw badRequest('proto: a string is not valid UTF-8')
    return bytes.toString('utf8')
  }

  /** Passes over a field that is not known. */
  skip(type: number): void {
    const open: number[] = []
    let next = type
    for (;;) {
      if (next === wire.groupStart) open.push(next)
      else if (next === wire.groupEnd) {
        if (open.pop() === undefined) throw badRequest('proto: unexpected end of group')
      } else this.#skipScalar(next)
      if (open.length === 0) return
      if (open.length > maxGroupDepth) throw badRequest('proto: exceeded max depth')
      next = this.tag().type
    }
  }

  #skipScalar(type: number): void {
    if (type === wire.varint) this.#varint()
    else if (type === wire.bytes) this.bytes()
    else if (type === wire.fixed64) this.#advance(8)
    else if (type === wire.fixed32) this.#advance(4)
    else throw badRequest(`proto: illegal wireType ${type}`)
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw endOfInput()
    this.#at += count
  }

  /** Up to ten bytes with seven bits each, as two unsigned halves. */
  #varint(): { low: number; high: number } {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= this.#end) throw endOfInput()
      const byte = this.#bytes[this.#at++] ?? 0
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else if (shift < 63) high |= bits << (shift - 32)
      else high |= (bits & 1) << 31
      if (byte < 0x80) return { low: low >>> 0, high: high >>> 0 }
    }
    throw badRequest('proto: integer overflow')
  }
}
