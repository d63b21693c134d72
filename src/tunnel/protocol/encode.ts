import {
  bytesField,
  int64Field,
  messagePrefixBytes,
  ProtobufError,
  tagOf,
  textField,
  uintField,
  varintBytes,
  wireType,
  writeVarint,
} from '../../grpc/index.ts'
import { type ControlPacket, ProtocolError, packetType } from './packet.ts'

function payloadOf(packet: ControlPacket): Buffer {
  switch (packet.type) {
    case packetType.DIAL_REQ:
      return bytesField(
        2,
        textField(1, packet.protocol),
        textField(2, packet.address),
        int64Field(3, packet.random),
      )
    case packetType.DIAL_RSP:
      return bytesField(
        3,
        textField(1, packet.error),
        uintField(2, packet.connectId),
        int64Field(3, packet.random),
      )
    case packetType.CLOSE_REQ:
      return bytesField(5, uintField(1, packet.connectId))
    case packetType.CLOSE_RSP:
      return bytesField(6, textField(1, packet.error), uintField(2, packet.connectId))
    case packetType.DIAL_CLS:
      return bytesField(7, int64Field(1, packet.random))
    case packetType.DRAIN:
      return bytesField(8)
    case packetType.CREDIT:
      return bytesField(100, uintField(1, packet.connectId), uintField(2, packet.bytes))
    case packetType.FIN:
      return bytesField(101, uintField(1, packet.connectId))
  }
}

/** Runs an encoder. @throws ProtocolError if a number cannot be encoded exactly */
function encoding(encode: () => Buffer): Buffer {
  try {
    return encode()
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error
    throw new ProtocolError(error.message)
  }
}

/** Encodes a packet as a gRPC message with its prefix. @throws ProtocolError */
export const encodePacket = (packet: ControlPacket): Buffer =>
  encoding(() => {
    const parts = [uintField(1, packet.type), uintField(9, packet.dest), payloadOf(packet)]
    const prefix = Buffer.alloc(messagePrefixBytes)
    const message = Buffer.concat([prefix, ...parts])
    message.writeUInt32BE(message.length - messagePrefixBytes, 1)
    return message
  })

const typeTag = tagOf(1, wireType.varint)
const destTag = tagOf(9, wireType.varint)
const dataTag = tagOf(4, wireType.bytes)
const connectIdTag = tagOf(1, wireType.varint)
const payloadTag = tagOf(3, wireType.bytes)

/**
 * Encodes everything before the payload of a DATA packet, with the gRPC prefix. The payload comes last in the message, so
 * that it is sent without being copied. All tags and `dest` are one byte long. @throws ProtocolError
 */
export const encodeDataHead = (connectId: number, dest: number, payloadBytes: number): Buffer =>
  encoding(() => {
    const idBytes = connectId === 0 ? 0 : 1 + varintBytes(connectId)
    const innerBytes = idBytes + 1 + varintBytes(payloadBytes) + payloadBytes
    const bodyBytes = 2 + (dest === 0 ? 0 : 2) + 1 + varintBytes(innerBytes) + innerBytes
    const out = Buffer.allocUnsafe(messagePrefixBytes + bodyBytes - payloadBytes)
    out[0] = 0
    out.writeUInt32BE(bodyBytes, 1)
    let at = messagePrefixBytes
    out[at++] = typeTag
    out[at++] = packetType.DATA
    if (dest !== 0) {
      out[at++] = destTag
      out[at++] = dest
    }
    out[at++] = dataTag
    at = writeVarint(out, at, innerBytes)
    if (connectId !== 0) {
      out[at++] = connectIdTag
      at = writeVarint(out, at, connectId)
    }
    out[at++] = payloadTag
    writeVarint(out, at, payloadBytes)
    return out
  })
