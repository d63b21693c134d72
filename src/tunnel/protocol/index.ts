export { encodeDataHead, encodePacket } from './encode-packet.ts'
export {
  type CloseRequest,
  type CloseResponse,
  type ControlPacket,
  type Credit,
  type DialRequest,
  type DialResponse,
  destination,
  type Fin,
} from './packet.ts'
export { PacketDecoder } from './packet-decoder.ts'
export { type PacketTypeName, packetType } from './packet-type.ts'
export { ProtocolError } from './protocol-error.ts'
