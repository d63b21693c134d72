import { isUtf8 } from 'node:buffer'
import { badRequest, type Work } from '../../../core/index.ts'

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
/** Up to this length a loop is faster than a call into Node.js. */
const shortText = 24

const endOfInput = () => badRequest('unexpected EOF')

/** Reads protobuf's elements from the bytes between two offsets. */
export class WireReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  /** The two unsigned halves of the varint that was read last. */
  #low = 0
  #high = 0
  readonly work: Work

  /** Each field that is read is a token of `work`. */
  constructor(bytes: Buffer, work: Work, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.work = work
    this.#at = start
    this.#end = end
  }

  get done(): boolean {
    return this.#at >= this.#end
  }

  get isEmpty(): boolean {
    return this.#at === this.#end
  }

  /** The next field's number times eight, plus its wire type. */
  tag(): number {
    this.work.spend('tokens', 1)
    this.#readVarint()
    if (this.#high !== 0 || this.#low < 8) throw badRequest(`proto: illegal tag ${this.#low >>> 3}`)
    return this.#low
  }

  /** A signed 64-bit integer; not exact beyond 53 bits, which the check of structure refuses. */
  int64(): number {
    this.#readVarint()
    return (this.#high | 0) * 2 ** 32 + this.#low
  }

  /** A signed 32-bit integer. */
  int32(): number {
    this.#readVarint()
    return this.#low | 0
  }

  bool(): boolean {
    this.#readVarint()
    return this.#low !== 0 || this.#high !== 0
  }

  /** A reader of the message that comes next. */
  message(): WireReader {
    const start = this.#enter()
    return new WireReader(this.#bytes, this.work, start, this.#at)
  }

  /** The bytes that come next, not copied. */
  bytes(): Buffer {
    const start = this.#enter()
    return this.#bytes.subarray(start, this.#at)
  }

  text(): string {
    const start = this.#enter()
    if (this.#at - start <= shortText) {
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
    if (!isUtf8(bytes)) throw badRequest('proto: a string is not valid UTF-8')
    return bytes.toString('utf8')
  }

  /** Passes over a field that is not known. */
  skip(type: number): void {
    let open = 0
    let next = type
    for (;;) {
      if (next === wire.groupStart) open++
      else if (next === wire.groupEnd) open--
      else this.#skipScalar(next)
      if (open < 0) throw badRequest('proto: unexpected end of group')
      if (open === 0) return
      if (open > maxGroupDepth) throw badRequest('proto: exceeded max depth')
      next = this.tag() & 7
    }
  }

  #skipScalar(type: number): void {
    if (type === wire.varint) this.#readVarint()
    else if (type === wire.bytes) this.#enter()
    else if (type === wire.fixed64) this.#advance(8)
    else if (type === wire.fixed32) this.#advance(4)
    else throw badRequest(`proto: illegal wireType ${type}`)
  }

  /** Passes over a length and what it announces; returns where that starts. */
  #enter(): number {
    this.#readVarint()
    const start = this.#at
    if (this.#high !== 0) throw endOfInput()
    this.#advance(this.#low)
    return start
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw endOfInput()
    this.#at += count
  }

  /** Up to ten bytes with seven bits each. */
  #readVarint(): void {
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
      } else high |= bits << (shift - 32)
      if (byte < 0x80) {
        this.#low = low >>> 0
        this.#high = high >>> 0
        return
      }
    }
    throw badRequest('proto: integer overflow')
  }
}
