import {
  type ControlPacket,
  destinationOf,
  type PacketTypeName,
  ProtocolError,
  packetType,
} from './packet.ts'
import { parsePacket } from './parse.ts'
import { cutOff, WireReader } from './wire-reader.ts'

/** What a decoder reports. */
export interface PacketHandler {
  /** A packet has begun; comes before whatever is reported of it. */
  seen(type: PacketTypeName): void
  packet(packet: ControlPacket): void
  /** Payload of a DATA packet, as it arrives and in as many pieces. */
  data(connectId: number, dest: number, chunk: Buffer): void
  /** A packet of a type that this version does not know; to be ignored. */
  unknown(wireType: number): void
}

/** The largest message that grpc-go takes unless told otherwise. */
const defaultMaxMessageBytes = 4 * 1024 * 1024
const prefixBytes = 5
/** The fields before the payload of a DATA packet are shorter than this. */
const longestHeadBytes = 48

const nameOf: ReadonlyMap<number, PacketTypeName> = new Map([
  [packetType.DIAL_REQ, 'DIAL_REQ'],
  [packetType.DIAL_RSP, 'DIAL_RSP'],
  [packetType.CLOSE_REQ, 'CLOSE_REQ'],
  [packetType.CLOSE_RSP, 'CLOSE_RSP'],
  [packetType.DATA, 'DATA'],
  [packetType.DIAL_CLS, 'DIAL_CLS'],
  [packetType.DRAIN, 'DRAIN'],
  [packetType.CREDIT, 'CREDIT'],
  [packetType.FIN, 'FIN'],
])

/** Decodes a stream of gRPC messages that arrives in chunks of any size. Throws ProtocolError, after which it is of no more use. */
export class PacketDecoder {
  readonly #handler: PacketHandler
  readonly #maxMessageBytes: number
  readonly #reader = new WireReader(Buffer.alloc(0), 0, 0)
  /** The beginning of a message, too short to tell what it is. */
  #held: Buffer | undefined
  /** A message that is collected because its payload does not come last; in one piece, however many it comes in. */
  #collected: Buffer | undefined
  /** What the current message still lacks. */
  #remaining = 0
  #connectId = 0
  #dest = 0

  constructor(handler: PacketHandler, maxMessageBytes = defaultMaxMessageBytes) {
    this.#handler = handler
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Memory of a message that is not whole yet. */
  get heldBytes(): number {
    return (this.#held?.length ?? 0) + (this.#collected?.length ?? 0)
  }

  push(chunk: Buffer): void {
    let rest = chunk
    while (this.#held !== undefined && rest.length > 0) {
      // Only the head is copied together, never the payload behind it.
      const taken = Math.min(rest.length, longestHeadBytes)
      const joined = Buffer.concat([this.#held, rest.subarray(0, taken)])
      this.#held = undefined
      rest = rest.subarray(taken)
      this.#feed(joined)
    }
    if (rest.length > 0) this.#feed(rest)
  }

  /** The stream is over; it must not be in the middle of a message. */
  end(): void {
    if (this.#held !== undefined || this.#remaining > 0)
      throw new ProtocolError('the stream ends within a packet')
  }

  #feed(chunk: Buffer): void {
    let position = 0
    while (position < chunk.length) {
      if (this.#remaining > 0) position = this.#continue(chunk, position)
      else {
        const next = this.#begin(chunk, position)
        if (next === cutOff) {
          // Copied: a few bytes would keep the whole chunk.
          this.#held = Buffer.from(chunk.subarray(position))
          return
        }
        position = next
      }
    }
  }

  #continue(chunk: Buffer, position: number): number {
    const end = Math.min(chunk.length, position + this.#remaining)
    const part = position === 0 && end === chunk.length ? chunk : chunk.subarray(position, end)
    const message = this.#collected
    if (message) part.copy(message, message.length - this.#remaining)
    this.#remaining -= part.length
    if (!message) this.#handler.data(this.#connectId, this.#dest, part)
    else if (this.#remaining === 0) {
      this.#collected = undefined
      this.#whole(message, 0, message.length)
    }
    return end
  }

  #begin(chunk: Buffer, position: number): number {
    const start = position + prefixBytes
    if (start > chunk.length) return cutOff
    if (chunk[position] !== 0) throw new ProtocolError('a message is compressed')
    const length = chunk.readUInt32BE(position + 1)
    if (length > this.#maxMessageBytes)
      throw new ProtocolError(`a message of ${length} bytes is over the limit`)
    const messageEnd = start + length
    const payload = this.#readDataHead(chunk, start, messageEnd)
    if (payload >= 0) {
      this.#remaining = messageEnd - payload
      this.#handler.seen('DATA')
      return payload
    }
    if (messageEnd <= chunk.length) {
      this.#whole(chunk, start, messageEnd)
      return messageEnd
    }
    if (payload === cutOff && chunk.length - start < longestHeadBytes) return cutOff
    this.#collected = Buffer.allocUnsafe(length)
    this.#remaining = length
    return start
  }

  /**
   * Where the payload of a DATA packet begins if it is the last thing in its message,
   * `cutOff` if more bytes are needed to tell, else -2.
   */
  #readDataHead(chunk: Buffer, start: number, messageEnd: number): number {
    const reader = this.#reader
    reader.bytes = chunk
    reader.position = start
    reader.end = Math.min(chunk.length, messageEnd)
    const other = -2
    let type = 0
    let dest = 0
    let tag = reader.varint()
    while (tag === 0x08 || tag === 0x48) {
      const value = reader.varint()
      if (tag === 0x08) type = value
      else dest = value
      tag = reader.varint()
    }
    if (tag === cutOff) return cutOff
    if (tag !== 0x22 || type !== packetType.DATA) return other
    this.#dest = destinationOf(dest)
    return this.#readDataBody(reader, messageEnd, other)
  }

  #readDataBody(reader: WireReader, messageEnd: number, other: number): number {
    const length = reader.varint()
    if (length === cutOff) return cutOff
    if (reader.position + length !== messageEnd) return other
    let connectId = 0
    let tag = reader.varint()
    if (tag === 0x08) {
      connectId = reader.varint()
      tag = reader.varint()
    }
    if (tag === cutOff) return cutOff
    const payloadBytes = tag === 0x1a ? reader.varint() : other
    if (payloadBytes === cutOff) return cutOff
    if (reader.position + payloadBytes !== messageEnd || !Number.isSafeInteger(connectId))
      return other
    this.#connectId = connectId
    return reader.position
  }

  #whole(message: Buffer, start: number, end: number): void {
    const packet = parsePacket(message, start, end)
    if (packet.type === undefined) {
      this.#handler.unknown(packet.wireType)
      return
    }
    const name = nameOf.get(packet.type)
    if (name !== undefined) this.#handler.seen(name)
    if (packet.type !== packetType.DATA) this.#handler.packet(packet)
    else if (packet.data.length > 0) this.#handler.data(packet.connectId, packet.dest, packet.data)
  }
}
