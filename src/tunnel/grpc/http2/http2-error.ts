import { SallyportError } from '../../../core/index.ts'

/** HTTP/2's error codes (RFC 9113 §7) that occur here. */
export const errorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const

/** The other end broke HTTP/2; the connection cannot go on. */
export class Http2Error extends SallyportError {
  readonly code = 'TUNNEL_HTTP2_ERROR'
  /** What the other end is told. */
  readonly errorCode: number

  constructor(name: keyof typeof errorCode, what: string) {
    super(`the other end broke HTTP/2: ${what}`)
    this.errorCode = errorCode[name]
  }
}
