import { SallyportError, systemErrorCode } from '../../core/index.ts'

/** A channel ended otherwise than by both directions being done. */
export class ChannelBroken extends SallyportError {
  readonly code = 'TUNNEL_CHANNEL_BROKEN'
}

/** The link under a channel is gone. */
export class LinkLost extends SallyportError {
  readonly code = 'TUNNEL_LINK_LOST'

  constructor(cause?: Error) {
    super('the link of this connection was lost', { cause })
  }
}

/** The other end of a link lives, but takes nothing any more. */
export class LinkStalled extends SallyportError {
  readonly code = 'TUNNEL_LINK_STALLED'

  constructor(limitMs: number) {
    super(
      `the other end of the link answers pings but has read nothing for ${limitMs / 1_000} s; the link is ended so that a new one can take its place`,
    )
  }
}

/** What the other end may be told of an error. */
export function wordsForPeer(error: Error): string {
  if (error instanceof SallyportError) return error.message
  return systemErrorCode(error) ?? 'connection reset'
}
