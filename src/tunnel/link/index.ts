export { BufferBudget, BufferBudgets } from './buffer-budget.ts'
export type { Leg, LegEvents } from './byte-stream.ts'
export { socketLeg } from './byte-stream.ts'
export { DialFailed } from './dials.ts'
export { duplexOf } from './duplex.ts'
export { join } from './join.ts'
export { defaultLinkLimits, type LinkLimits } from './limits.ts'
export type {
  Capability,
  Carrier,
  CarrierEvents,
  Channel,
  DialFailureReason,
  IncomingDial,
  Link,
  LinkEnd,
  LinkEvents,
  LinkSide,
  PacketTally,
} from './link.ts'
export {
  agreed,
  allCapabilities,
  capabilityHeader,
  formatCapabilities,
  parseCapabilities,
} from './link.ts'
export { PacketLink } from './packet-link.ts'
