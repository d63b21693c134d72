export { BufferBudget, BufferBudgets } from './buffer-budget.ts'
export { type ByteStream, type ByteStreamEvents, socketStream } from './byte-stream.ts'
export { DialFailed } from './dials.ts'
export { duplexOf } from './duplex.ts'
export { type ConnectLinkOptions, connectLink } from './grpc-link.ts'
export { join } from './join.ts'
export { defaultLinkLimits, type LinkLimits } from './limits.ts'
export {
  allCapabilities,
  type Capability,
  type Carrier,
  type CarrierEvents,
  type Channel,
  type DialFailureReason,
  type IncomingDial,
  type Link,
  type LinkEnd,
  type LinkEvents,
  type LinkSide,
  type PacketTally,
} from './link.ts'
export { LinkServer, type LinkServerOptions } from './link-server.ts'
export { PacketLink } from './packet-link.ts'
