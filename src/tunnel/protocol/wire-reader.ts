import { ProtocolError } from './packet.ts'

/** What `varint` returns when the bytes end within the number. */
export const cutOff = -1

const maxVarintBytes = 10
const tooLongNumber = 'a number has more than ten bytes'
/** No address and no reason is longer; the rest would only fill memory and logs. */
const maxTextBytes = 1_024

/** Reads protobuf fields from a part of a buffer, without copying. */
export class WireReader {
  bytes: Buffer
  position: number
  end: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes
    this.position = start
    this.end = end
  }

  /** A non-negative and finite number; above 2^53 only its being too large is meaningful. */
  varint(): number {
    let value = 0
    let unit = 1
    for (let count = 0; count < maxVarintBytes; count++) {
      if (this.position >= this.end) return cutOff
      const byte = this.bytes[this.position++] ?? 0
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
      unit *= 128
    }
    throw new ProtocolError(tooLongNumber)
  }

  /** A number that has to be there and has to be exact. */
  safeInteger(what: string): number {
    const value = this.varint()
    if (value === cutOff) throw new ProtocolError('a packet ends within a number')
    if (!Number.isSafeInteger(value)) throw new ProtocolError(`${what} is out of range`)
    return value
  }

  /** An int64. */
  int64(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.position >= this.end) throw new ProtocolError('a packet ends within a number')
      const byte = this.bytes[this.position++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asIntN(64, value)
    }
    throw new ProtocolError(tooLongNumber)
  }

  /** A length-delimited field's place; the position moves behind it. */
  span(): { start: number; end: number } {
    const length = this.safeInteger('a length')
    const start = this.position
    if (length > this.end - start) throw new ProtocolError('a field is longer than its packet')
    this.position = start + length
    return { start, end: this.position }
  }

  /** A text, cut where it becomes too long for anything that is meant. */
  text(): string {
    const { start, end } = this.span()
    return this.bytes.toString('utf8', start, Math.min(end, start + maxTextBytes))
  }

  /** Passes over a field that we do not know. */
  skip(tag: number): void {
    switch (tag & 7) {
      case 0:
        if (this.varint() === cutOff) throw new ProtocolError('a packet ends within a number')
        return
      case 1:
        this.#advance(8)
        return
      case 2:
        this.span()
        return
      case 5:
        this.#advance(4)
        return
      default:
        throw new ProtocolError('a field has a wire type that does not exist')
    }
  }

  #advance(bytes: number): void {
    if (bytes > this.end - this.position) throw new ProtocolError('a packet ends within a field')
    this.position += bytes
  }
}
