export { PacketDecoder } from './decode.ts'
export { encodeDataHead, encodePacket } from './encode.ts'
export {
  type CloseRequest,
  type CloseResponse,
  type ControlPacket,
  type Credit,
  type DialRequest,
  type DialResponse,
  destination,
  type Fin,
  type PacketTypeName,
  ProtocolError,
  packetType,
} from './packet.ts'
