import type { PacketTypeName } from '../protocol/index.ts'

/** Hears of packets as they come and go, for metrics. */
export interface PacketTally {
  received(type: PacketTypeName): void
  sent(type: PacketTypeName): void
}
