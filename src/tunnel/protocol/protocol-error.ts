import { SallyportError } from '../../core/index.ts'

/** The other end sent bytes that are not the tunnel's protocol; the link cannot go on. */
export class ProtocolError extends SallyportError {
  readonly code = 'TUNNEL_PROTOCOL_ERROR'

  constructor(what: string) {
    super(`the other end of the link broke the tunnel protocol: ${what}`)
  }
}
