import {
  defaultMaxMessageBytes,
  GrpcMessageError,
  messageLength,
  messagePrefixBytes,
  ProtobufError,
  ProtobufReader,
  tagOf,
  wireType,
} from '../../grpc/index.ts'
import {
  type ControlPacket,
  destinationOf,
  type PacketTypeName,
  ProtocolError,
  packetType,
} from './packet.ts'
import { parsePacket } from './parse.ts'

/** Receives what a PacketDecoder decodes. */
export interface PacketHandler {
  /** A packet has begun; called before its content. */
  seen(type: PacketTypeName): void
  packet(packet: ControlPacket): void
  /** Payload of a DATA packet, in chunks as it arrives. */
  data(connectId: number, dest: number, chunk: Buffer): void
  /** A packet of an unknown type, which is ignored. */
  unknown(wireType: number): void
}

/** The fields before the payload of a DATA packet are shorter than this. */
const maxHeadBytes = 48

/** The beginning of a packet does not tell yet where its payload starts. */
const incomplete = -1
/** A packet is not a DATA packet whose payload comes last. */
const otherPacket = -2

const typeTag = tagOf(1, wireType.varint)
const destTag = tagOf(9, wireType.varint)
const dataTag = tagOf(4, wireType.bytes)
const connectIdTag = tagOf(1, wireType.varint)
const payloadTag = tagOf(3, wireType.bytes)

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

/** Decodes a stream of gRPC messages that arrives in chunks of any size. Unusable after it has thrown a ProtocolError. */
export class PacketDecoder {
  readonly #handler: PacketHandler
  readonly #maxMessageBytes: number
  readonly #reader = new ProtobufReader(Buffer.alloc(0))
  /** The beginning of a message that is too short to decode. */
  #partial: Buffer | undefined
  /** A message that is collected because its payload does not come last; one piece of memory, however it arrives. */
  #collected: Buffer | undefined
  /** Bytes of the current message that have not arrived. */
  #remaining = 0
  #connectId = 0
  #dest = 0

  constructor(handler: PacketHandler, maxMessageBytes = defaultMaxMessageBytes) {
    this.#handler = handler
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Memory of a message that is not complete. */
  get heldBytes(): number {
    return (this.#partial?.length ?? 0) + (this.#collected?.length ?? 0)
  }

  /** @throws ProtocolError */
  push(chunk: Buffer): void {
    try {
      this.#push(chunk)
    } catch (error) {
      if (!(error instanceof ProtobufError || error instanceof GrpcMessageError)) throw error
      throw new ProtocolError(error.message)
    }
  }

  #push(chunk: Buffer): void {
    let rest = chunk
    while (this.#partial !== undefined && rest.length > 0) {
      // Only the head is copied, never the payload behind it.
      const taken = Math.min(rest.length, maxHeadBytes)
      const joined = Buffer.concat([this.#partial, rest.subarray(0, taken)])
      this.#partial = undefined
      rest = rest.subarray(taken)
      this.#feed(joined)
    }
    if (rest.length > 0) this.#feed(rest)
  }

  /** The stream has ended. @throws ProtocolError if that was within a message */
  end(): void {
    if (this.#partial !== undefined || this.#remaining > 0)
      throw new ProtocolError('stream ends within a packet')
  }

  #feed(chunk: Buffer): void {
    let position = 0
    while (position < chunk.length) {
      if (this.#remaining > 0) position = this.#continue(chunk, position)
      else {
        const next = this.#begin(chunk, position)
        if (next === incomplete) {
          // Copied: a few bytes would keep the whole chunk.
          this.#partial = Buffer.from(chunk.subarray(position))
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
      this.#decode(message, 0, message.length)
    }
    return end
  }

  #begin(chunk: Buffer, position: number): number {
    const start = position + messagePrefixBytes
    if (start > chunk.length) return incomplete
    const length = messageLength(chunk, position, this.#maxMessageBytes)
    const messageEnd = start + length
    const payload = this.#readDataHead(chunk, start, messageEnd)
    if (payload >= 0) {
      this.#remaining = messageEnd - payload
      this.#handler.seen('DATA')
      return payload
    }
    if (messageEnd <= chunk.length) {
      this.#decode(chunk, start, messageEnd)
      return messageEnd
    }
    if (payload === incomplete && chunk.length - start < maxHeadBytes) return incomplete
    this.#collected = Buffer.allocUnsafe(length)
    this.#remaining = length
    return start
  }

  /** Where the payload of a DATA packet begins if it comes last in its message, else `incomplete` or `otherPacket`. */
  #readDataHead(chunk: Buffer, start: number, messageEnd: number): number {
    const reader = this.#reader
    reader.reset(chunk, start, Math.min(chunk.length, messageEnd))
    let type = 0
    let dest = 0
    let tag = reader.partialUint64()
    while (tag === typeTag || tag === destTag) {
      const value = reader.partialUint64() ?? 0
      if (tag === typeTag) type = value
      else dest = value
      tag = reader.partialUint64()
    }
    if (tag === undefined) return incomplete
    if (tag !== dataTag || type !== packetType.DATA) return otherPacket
    this.#dest = destinationOf(dest)
    return this.#readDataBody(reader, messageEnd)
  }

  #readDataBody(reader: ProtobufReader, messageEnd: number): number {
    const length = reader.partialUint64()
    if (length === undefined) return incomplete
    if (reader.position + length !== messageEnd) return otherPacket
    let connectId = 0
    let tag = reader.partialUint64()
    if (tag === connectIdTag) {
      connectId = reader.partialUint64() ?? 0
      tag = reader.partialUint64()
    }
    if (tag === undefined) return incomplete
    if (tag !== payloadTag) return otherPacket
    const payloadBytes = reader.partialUint64()
    if (payloadBytes === undefined) return incomplete
    if (reader.position + payloadBytes !== messageEnd || !Number.isSafeInteger(connectId))
      return otherPacket
    this.#connectId = connectId
    return reader.position
  }

  #decode(message: Buffer, start: number, end: number): void {
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
