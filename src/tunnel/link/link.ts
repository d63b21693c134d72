import type { Clock, Logger } from '../../core/index.ts'
import { destination, type PacketTypeName } from '../protocol/index.ts'
import type { BufferBudget } from './buffer-budget.ts'
import type { ByteStream } from './byte-stream.ts'
import type { LinkLimits } from './limits.ts'

/** Extensions of Konnectivity's protocol between two Sallyport processes, named as in the metadata `x-knp-ext`. */
export type Capability = 'rdial' | 'credit' | 'halfclose'

/** A tunnelled connection of a link. */
export interface Channel extends ByteStream {
  /** The dialled address. */
  readonly address: string
}

/** Why a dial through a link failed. */
export type DialFailureReason =
  /** The peer tried and sent an error. */
  | 'refused-by-peer'
  /** The link ended before the response. */
  | 'link-lost'
  /** No response within the deadline. */
  | 'timeout'
  /** The caller's signal aborted. */
  | 'cancelled'

/** A dial that the peer requests. */
export interface IncomingDial {
  readonly protocol: string
  /** Host and port, IPv6 in brackets. */
  readonly address: string
  /** Aborts when the peer cancels or the link ends. */
  readonly signal: AbortSignal
  /** Responds that the target is connected; returns undefined if the peer has cancelled meanwhile. */
  accept(): Channel | undefined
  /** Responds that it is not; the text is sent to the peer. */
  refuse(text: string): void
}

/** Events of a link. */
export interface LinkEvents {
  dial(dial: IncomingDial): void
  /** The peer shuts down: no new dials if there is another link. */
  drain(): void
}

/** How a link ended. */
export interface LinkEnd {
  /** Absent after an orderly end. */
  readonly error?: Error
}

/**
 * The connection between a tunnel server and one of its peers, with many channels in both directions. It is symmetric:
 * either end dials.
 */
export interface Link {
  /** Extensions that both ends support. */
  readonly capabilities: ReadonlySet<Capability>
  /** Metadata of the peer, names in lower case. */
  readonly metadata: Readonly<Record<string, readonly string[]>>
  /** Call once, in the tick in which the link was received. */
  start(events: LinkEvents): void
  /** Requests a connection from the peer. @throws DialFailed */
  dial(
    address: string,
    options: { readonly signal: AbortSignal; readonly deadlineMs: number },
  ): Promise<Channel>
  /** Announces that we shut down. */
  sendDrain(): void
  readonly isDraining: boolean
  readonly channelCount: number
  readonly pendingDialCount: number
  /** Bytes queued for the peer over all channels. */
  readonly backlog: number
  /** Closes the link and all its channels. */
  close(error?: Error): void
  readonly ended: Promise<LinkEnd>
}

/**
 * Which end of which stream a link is. The stream of an agent has a `server` and an `agent`. The stream of a front end has a
 * `gateway` (ours) and a `front-end`, which alone dials, and only once.
 */
export type LinkSide = 'server' | 'agent' | 'gateway' | 'front-end'

/** The `dest` of connections that we dial, and of those that the other end dials; absent where that is not possible. */
export interface Directions {
  readonly outbound?: number
  readonly inbound?: number
}

/** Which end may dial on a link, and the `dest` of each direction. */
export function directionsOf(side: LinkSide, hasReverseDials: boolean): Directions {
  const { unset, controlPlane } = destination
  switch (side) {
    case 'server':
      return { outbound: unset, ...(hasReverseDials && { inbound: controlPlane }) }
    case 'agent':
      return { inbound: unset, ...(hasReverseDials && { outbound: controlPlane }) }
    case 'gateway':
      return { inbound: unset }
    case 'front-end':
      return { outbound: unset }
  }
}

/** The metadata name for extensions of Konnectivity's protocol. */
export const capabilityHeader = 'x-knp-ext'

const version = 'v1'
const known: readonly Capability[] = ['rdial', 'credit', 'halfclose']

/** All extensions of this version. */
export const allCapabilities: readonly Capability[] = known

/** The header's value for these capabilities. */
export const formatCapabilities = (capabilities: Iterable<Capability>): string =>
  `${version}; ${[...capabilities].join(', ')}`

/** The extensions of the peer; a malformed value counts as none. */
export function parseCapabilities(values: readonly string[] = []): ReadonlySet<Capability> {
  const [value, ...others] = values
  if (value === undefined || others.length > 0) return new Set()
  const [peerVersion, list = ''] = value.split(';').map((part) => part.trim())
  if (peerVersion !== version) return new Set()
  const names = new Set(list.split(',').map((name) => name.trim()))
  return new Set(known.filter((capability) => names.has(capability)))
}

/** Extensions that both ends support. */
export const commonCapabilities = (
  offered: Iterable<Capability>,
  supported: ReadonlySet<Capability>,
): ReadonlySet<Capability> =>
  new Set([...offered].filter((capability) => supported.has(capability)))

/** Events of a carrier. */
export interface CarrierEvents {
  data(chunk: Buffer): void
  /** Some written bytes have left. */
  progress(): void
  /** The carrier has ended, in order if there is no error; called exactly once and last. */
  ended(error?: Error): void
}

/** The byte stream in both directions that a link runs on. */
export interface Carrier {
  start(events: CarrierEvents): void
  /** Writes buffers in order, in one system call if possible. */
  write(parts: readonly Buffer[]): void
  /** Written bytes that have not left yet. */
  readonly backlog: number
  /** The part of these bytes that belongs to this carrier alone, where several share a connection. */
  readonly heldBytes: number
  /** While on, the peer's window is not opened again. */
  throttle(isOn: boolean): void
  /** Opens the window of a throttled peer to at least `bytes`. */
  allow(bytes: number): void
  /** The shortest round trip measured so far. */
  readonly roundTripMs: number
  /** Ends in order once everything written has left. */
  end(): void
  /** Ends at once. */
  destroy(error?: Error): void
}

/** Counts packets, for metrics. */
export interface PacketTally {
  received(type: PacketTypeName): void
  sent(type: PacketTypeName): void
}

/** What a PacketLink is created from. */
export interface PacketLinkOptions {
  readonly carrier: Carrier
  readonly side: LinkSide
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
  readonly limits: LinkLimits
  readonly clock: Clock
  readonly log: Logger
  readonly packets?: PacketTally | undefined
  /** Shared with the other links of the peer; default: its own. */
  readonly budget?: BufferBudget | undefined
}
