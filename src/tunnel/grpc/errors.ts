import { SallyportError } from '../../core/index.ts'

/** The other end was reached and does not want this link. */
export class LinkRefused extends SallyportError {
  readonly code = 'TUNNEL_LINK_REFUSED'
  readonly grpcStatus: number

  constructor(where: string, grpcStatus: number, text: string) {
    super(`${where} refused the link: ${text}`)
    this.grpcStatus = grpcStatus
  }
}

/** The other end was not reached, or does not speak the protocol. */
export class LinkUnreachable extends SallyportError {
  readonly code = 'TUNNEL_LINK_UNREACHABLE'

  constructor(where: string, why: string, cause?: unknown) {
    super(`cannot open a link to ${where}: ${why}`, { cause })
  }
}

/** An open link broke. */
export class LinkBroken extends SallyportError {
  readonly code = 'TUNNEL_LINK_BROKEN'
}
