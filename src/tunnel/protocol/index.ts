export { type PacketTypeName, packetType } from './packet-type.ts'
