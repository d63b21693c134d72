import type { Leg } from './leg.ts'

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
