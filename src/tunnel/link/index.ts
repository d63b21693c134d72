export {
  agreed,
  allCapabilities,
  capabilityHeader,
  formatCapabilities,
  parseCapabilities,
} from './capabilities.ts'
export type { Carrier, CarrierEvents } from './carrier.ts'
export { DialFailed } from './dial-failed.ts'
export { duplexOf } from './duplex-of.ts'
export { join } from './join.ts'
export type { Leg, LegEvents } from './leg.ts'
export { defaultLinkLimits, type LinkLimits } from './limits.ts'
export type {
  Capability,
  Channel,
  DialFailureReason,
  IncomingDial,
  Link,
  LinkEnd,
  LinkEvents,
} from './link.ts'
export type { LinkSide } from './link-side.ts'
export { PacketLink } from './packet-link.ts'
export type { PacketTally } from './packet-tally.ts'
export { SendQueue } from './send-queue.ts'
export { socketLeg } from './socket-leg.ts'
