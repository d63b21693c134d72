import { destination, type PacketTypeName } from '../protocol/index.ts'
import type { Leg } from './byte-stream.ts'

/** What two Sallyport ends may agree on beyond Konnectivity's protocol, named as in the metadata `x-knp-ext`. */
export type Capability = 'rdial' | 'credit' | 'halfclose'

/** A tunnelled connection of a link. */
export interface Channel extends Leg {
  /** The address that was dialled. */
  readonly address: string
}

/** Why a dial that went through a link came to nothing. */
export type DialFailureReason =
  /** The other end tried and says why. */
  | 'refused-by-peer'
  /** The link ended before there was an answer. */
  | 'link-lost'
  /** No answer within the deadline. */
  | 'timeout'
  /** The caller's signal aborted. */
  | 'cancelled'

/** A dial that the other end of the link asks for. */
export interface IncomingDial {
  readonly protocol: string
  /** Host and port, IPv6 in brackets. */
  readonly address: string
  /** Aborts when the other end gives up or the link ends. */
  readonly signal: AbortSignal
  /** Answers that the connection stands; `undefined` when the other end has given up meanwhile. */
  accept(): Channel | undefined
  /** Answers that it does not; the words are passed on. */
  refuse(text: string): void
}

/** What a link tells its owner. */
export interface LinkEvents {
  dial(dial: IncomingDial): void
  /** The other end asks for no new dials if there is any other way. */
  drain(): void
}

/** How a link ended. */
export interface LinkEnd {
  /** Absent when it was closed in order. */
  readonly error?: Error
}

/**
 * The connection between a tunnel server and one of its peers, with many channels in both directions.
 * Symmetric: either end dials, either end is dialled.
 */
export interface Link {
  /** What both ends can do. */
  readonly capabilities: ReadonlySet<Capability>
  /** The metadata that the other end sent, names in lower case. */
  readonly metadata: Readonly<Record<string, readonly string[]>>
  /** To be called once, in the same tick in which the link was handed over. */
  start(events: LinkEvents): void
  /** Lets the other end open a connection; rejects with DialFailed. */
  dial(
    address: string,
    options: { readonly signal: AbortSignal; readonly deadlineMs: number },
  ): Promise<Channel>
  /** Says that we go soon. */
  sendDrain(): void
  readonly isDraining: boolean
  readonly channelCount: number
  readonly pendingDialCount: number
  /** Bytes queued for the other end over all channels. */
  readonly backlog: number
  /** Ends the link and all its channels. */
  close(error?: Error): void
  readonly ended: Promise<LinkEnd>
}

/**
 * Which end of which stream a link is. An agent's stream has a `server` and an `agent`;
 * a front end's has a `gateway` (ours) and a `front-end`, which alone dials, and only once.
 */
export type LinkSide = 'server' | 'agent' | 'gateway' | 'front-end'

/** The `dest` of connections that we dial, and of those that the other end dials; absent where that is not possible. */
export interface Directions {
  readonly outbound?: number
  readonly inbound?: number
}

/** Who may dial on a link, and how the two directions are told apart. */
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

/** The metadata name under which both ends say what they can do beyond Konnectivity's protocol. */
export const capabilityHeader = 'x-knp-ext'

const version = 'v1'
const known: readonly Capability[] = ['rdial', 'credit', 'halfclose']

/** Everything this version can do. */
export const allCapabilities: readonly Capability[] = known

/** The header's value for these capabilities. */
export const formatCapabilities = (capabilities: Iterable<Capability>): string =>
  `${version}; ${[...capabilities].join(', ')}`

/** What the other end can do; anything unreadable counts as nothing. */
export function parseCapabilities(values: readonly string[] = []): ReadonlySet<Capability> {
  const [value, ...others] = values
  if (value === undefined || others.length > 0) return new Set()
  const [said, list = ''] = value.split(';').map((part) => part.trim())
  if (said !== version) return new Set()
  const names = new Set(list.split(',').map((name) => name.trim()))
  return new Set(known.filter((capability) => names.has(capability)))
}

/** What both ends can do. */
export const agreed = (
  ours: Iterable<Capability>,
  theirs: ReadonlySet<Capability>,
): ReadonlySet<Capability> => new Set([...ours].filter((capability) => theirs.has(capability)))

/** What a carrier tells the link that it carries. */
export interface CarrierEvents {
  data(chunk: Buffer): void
  /** Some of what was written has left. */
  progress(): void
  /** The carrier is gone; comes exactly once and last. No error: it ended in order. */
  ended(error?: Error): void
}

/** The byte stream in both directions that a link runs on. */
export interface Carrier {
  start(events: CarrierEvents): void
  /** Takes buffers that leave in order, in one system call if possible. */
  write(parts: readonly Buffer[]): void
  /** Bytes taken by `write` that have not left yet. */
  readonly backlog: number
  /** Of these, the bytes of this carrier alone where several share a connection. */
  readonly heldBytes: number
  /** Lets the other end send no more than it was allowed already, until it is switched off. */
  throttle(isOn: boolean): void
  /** Lets a throttled other end send a little. */
  allow(bytes: number): void
  /** The shortest round trip seen so far. */
  readonly roundTripMs: number
  /** Ends in order once everything written has left. */
  end(): void
  /** Ends at once. */
  destroy(error?: Error): void
}

/** Hears of packets as they come and go, for metrics. */
export interface PacketTally {
  received(type: PacketTypeName): void
  sent(type: PacketTypeName): void
}
