import { SallyportError } from '../../core/index.ts'

/** The numbers of the packet types on the wire; 100 and above are ours. */
export const packetType = {
  DIAL_REQ: 0,
  DIAL_RSP: 1,
  CLOSE_REQ: 2,
  CLOSE_RSP: 3,
  DATA: 4,
  DIAL_CLS: 5,
  DRAIN: 6,
  CREDIT: 100,
  FIN: 101,
} as const

/** A packet type's name, as metrics and logs show it. */
export type PacketTypeName = keyof typeof packetType

/**
 * The network in which a connection's target lies (field 9).
 * Konnectivity leaves it out, which means the node network.
 */
export const destination = { unset: 0, controlPlane: 1, node: 2 } as const

/** The destination that a number on the wire stands for; one that is not known, as if it was left out. */
export const destinationOf = (value: number): number =>
  value === destination.controlPlane || value === destination.node ? value : destination.unset

interface Directed {
  /** One of `destination`, on every packet of a connection towards the control plane. */
  readonly dest: number
}

/** Asks the other end to connect. */
export interface DialRequest extends Directed {
  readonly type: typeof packetType.DIAL_REQ
  readonly protocol: string
  readonly address: string
  /** Names the dial until it has a connection id; 63 bits at random. */
  readonly random: bigint
}

/** Answers a dial: connected if `error` is empty. */
export interface DialResponse extends Directed {
  readonly type: typeof packetType.DIAL_RSP
  readonly error: string
  readonly connectId: number
  readonly random: bigint
}

/** Asks the other end to close a connection. */
export interface CloseRequest extends Directed {
  readonly type: typeof packetType.CLOSE_REQ
  readonly connectId: number
}

/** Says that a connection is closed. */
export interface CloseResponse extends Directed {
  readonly type: typeof packetType.CLOSE_RSP
  readonly error: string
  readonly connectId: number
}

/** Takes a dial back. */
interface CloseDial extends Directed {
  readonly type: typeof packetType.DIAL_CLS
  readonly random: bigint
}

/** Says that the sender goes soon. */
interface Drain extends Directed {
  readonly type: typeof packetType.DRAIN
}

/** Lets the other end send so many more bytes on a connection. */
export interface Credit extends Directed {
  readonly type: typeof packetType.CREDIT
  readonly connectId: number
  readonly bytes: number
}

/** Says that no more bytes follow in this direction of a connection. */
export interface Fin extends Directed {
  readonly type: typeof packetType.FIN
  readonly connectId: number
}

/** Every packet but DATA, whose bytes are handed over as they come. */
export type ControlPacket =
  | DialRequest
  | DialResponse
  | CloseRequest
  | CloseResponse
  | CloseDial
  | Drain
  | Credit
  | Fin

/** A DATA packet that was read as a whole. */
export interface Data extends Directed {
  readonly type: typeof packetType.DATA
  readonly connectId: number
  readonly data: Buffer
}

/** A packet of a type that we do not know. */
export interface UnknownPacket {
  readonly type: undefined
  readonly wireType: number
}

/** The other end sent bytes that are not the tunnel's protocol; the link cannot go on. */
export class ProtocolError extends SallyportError {
  readonly code = 'TUNNEL_PROTOCOL_ERROR'

  constructor(what: string) {
    super(`the other end of the link broke the tunnel protocol: ${what}`)
  }
}
