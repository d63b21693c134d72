import { SallyportError, systemErrorCode } from '../../core/index.ts'

/** The server refused the link. */
export class LinkRefused extends SallyportError {
  readonly code = 'TUNNEL_LINK_REFUSED'
  readonly grpcStatus: number

  constructor(server: string, grpcStatus: number, text: string) {
    super(`${server} refused the link: ${text}`)
    this.grpcStatus = grpcStatus
  }
}

/** No connection to the server, or the server does not speak the tunnel protocol. */
export class LinkUnreachable extends SallyportError {
  readonly code = 'TUNNEL_LINK_UNREACHABLE'

  constructor(server: string, reason: string, cause?: unknown) {
    super(`cannot open a link to ${server}: ${reason}`, { cause })
  }
}

/** An open link failed. */
export class LinkBroken extends SallyportError {
  readonly code = 'TUNNEL_LINK_BROKEN'
}

/** A channel was closed before both directions had ended. */
export class ChannelBroken extends SallyportError {
  readonly code = 'TUNNEL_CHANNEL_BROKEN'
}

/** The link of a channel has ended. */
export class LinkLost extends SallyportError {
  readonly code = 'TUNNEL_LINK_LOST'

  constructor(cause?: Error) {
    super('link of the connection was lost', { cause })
  }
}

/** The peer responds to pings but reads nothing. */
export class LinkStalled extends SallyportError {
  readonly code = 'TUNNEL_LINK_STALLED'

  constructor(limitMs: number) {
    super(
      `peer responds to pings but has read nothing for ${limitMs / 1_000} s; closing the link so that it can reconnect`,
    )
  }
}

/** The message of an error for a peer. */
export function publicMessage(error: Error): string {
  if (error instanceof SallyportError) return error.message
  return systemErrorCode(error) ?? 'connection reset'
}
