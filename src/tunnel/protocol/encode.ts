import { type ControlPacket, ProtocolError, packetType } from './packet.ts'

/** gRPC puts a flag and a length before each message. */
const prefixBytes = 5

function pushVarint(out: number[], value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new ProtocolError(`the number ${value} cannot be sent`)
  let rest = value
  while (rest >= 0x80) {
    out.push((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
}

function pushInt64(out: number[], value: bigint): void {
  let rest = BigInt.asUintN(64, value)
  while (rest >= 0x80n) {
    out.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  out.push(Number(rest))
}

/** proto3 leaves out what is zero or empty. */
function numberField(field: number, value: number): number[] {
  const out: number[] = []
  if (value === 0) return out
  pushVarint(out, field * 8)
  pushVarint(out, value)
  return out
}

function randomField(field: number, value: bigint): number[] {
  if (value === 0n) return []
  const out = [field * 8]
  pushInt64(out, value)
  return out
}

function textField(field: number, text: string): number[] {
  return text === '' ? [] : lengthField(field, Buffer.from(text))
}

function lengthField(field: number, content: Iterable<number> & { length: number }): number[] {
  const out: number[] = []
  pushVarint(out, field * 8 + 2)
  pushVarint(out, content.length)
  for (const byte of content) out.push(byte)
  return out
}

function payloadOf(packet: ControlPacket): number[] {
  switch (packet.type) {
    case packetType.DIAL_REQ:
      return lengthField(2, [
        ...textField(1, packet.protocol),
        ...textField(2, packet.address),
        ...randomField(3, packet.random),
      ])
    case packetType.DIAL_RSP:
      return lengthField(3, [
        ...textField(1, packet.error),
        ...numberField(2, packet.connectId),
        ...randomField(3, packet.random),
      ])
    case packetType.CLOSE_REQ:
      return lengthField(5, numberField(1, packet.connectId))
    case packetType.CLOSE_RSP:
      return lengthField(6, [...textField(1, packet.error), ...numberField(2, packet.connectId)])
    case packetType.DIAL_CLS:
      return lengthField(7, randomField(1, packet.random))
    case packetType.DRAIN:
      return lengthField(8, [])
    case packetType.CREDIT:
      return lengthField(100, [
        ...numberField(1, packet.connectId),
        ...numberField(2, packet.bytes),
      ])
    case packetType.FIN:
      return lengthField(101, numberField(1, packet.connectId))
  }
}

function prefixed(message: readonly number[], followingBytes: number): Buffer {
  const out = Buffer.allocUnsafe(prefixBytes + message.length)
  out[0] = 0
  out.writeUInt32BE(message.length + followingBytes, 1)
  for (let index = 0; index < message.length; index++)
    out[prefixBytes + index] = message[index] ?? 0
  return out
}

/** A packet as a gRPC message, prefix and all. */
export function encodePacket(packet: ControlPacket): Buffer {
  return prefixed(
    [...numberField(1, packet.type), ...numberField(9, packet.dest), ...payloadOf(packet)],
    0,
  )
}

/**
 * The bytes that go before the payload of a DATA packet, gRPC prefix and all.
 * The payload is the last thing in the message, so that it can be sent without being copied.
 */
export function encodeDataHead(connectId: number, dest: number, payloadBytes: number): Buffer {
  const inner: number[] = numberField(1, connectId)
  inner.push(0x1a)
  pushVarint(inner, payloadBytes)
  const head: number[] = [0x08, packetType.DATA]
  if (dest !== 0) head.push(0x48, dest)
  head.push(0x22)
  pushVarint(head, inner.length + payloadBytes)
  for (const byte of inner) head.push(byte)
  return prefixed(head, payloadBytes)
}
