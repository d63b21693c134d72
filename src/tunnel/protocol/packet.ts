import { SallyportError } from '../../core/index.ts'

/** Packet types on the wire; 100 and above are extensions of Sallyport. */
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

/** The name of a packet type in metrics and logs. */
export type PacketTypeName = keyof typeof packetType

/** The network of a connection's target (field 9). Konnectivity does not send it: the node network. */
export const destination = { unset: 0, controlPlane: 1, node: 2 } as const

/** The destination for a number on the wire; an unknown one counts as unset. */
export const destinationOf = (value: number): number =>
  value === destination.controlPlane || value === destination.node ? value : destination.unset

interface Directed {
  /** One of `destination`, on every packet of a connection towards the control plane. */
  readonly dest: number
}

/** Requests a connection. */
export interface DialRequest extends Directed {
  readonly type: typeof packetType.DIAL_REQ
  readonly protocol: string
  readonly address: string
  /** Identifies the dial until it has a connection id; 63 random bits. */
  readonly random: bigint
}

/** Response to a dial: connected if `error` is empty. */
export interface DialResponse extends Directed {
  readonly type: typeof packetType.DIAL_RSP
  readonly error: string
  readonly connectId: number
  readonly random: bigint
}

/** Requests that a connection is closed. */
export interface CloseRequest extends Directed {
  readonly type: typeof packetType.CLOSE_REQ
  readonly connectId: number
}

/** Reports that a connection is closed. */
export interface CloseResponse extends Directed {
  readonly type: typeof packetType.CLOSE_RSP
  readonly error: string
  readonly connectId: number
}

/** Cancels a dial. */
interface CloseDial extends Directed {
  readonly type: typeof packetType.DIAL_CLS
  readonly random: bigint
}

/** Announces that the sender shuts down. */
interface Drain extends Directed {
  readonly type: typeof packetType.DRAIN
}

/** Grants the peer more bytes on a connection. */
export interface Credit extends Directed {
  readonly type: typeof packetType.CREDIT
  readonly connectId: number
  readonly bytes: number
}

/** Ends one direction of a connection. */
export interface Fin extends Directed {
  readonly type: typeof packetType.FIN
  readonly connectId: number
}

/** Every packet except DATA, whose payload is passed on as it arrives. */
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

/** A packet of an unknown type. */
export interface UnknownPacket {
  readonly type: undefined
  readonly wireType: number
}

/** The peer violated the tunnel protocol; the link has to end. */
export class ProtocolError extends SallyportError {
  readonly code = 'TUNNEL_PROTOCOL_ERROR'

  constructor(problem: string) {
    super(`peer violated the tunnel protocol: ${problem}`)
  }
}
