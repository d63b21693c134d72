/** Limits of a link. */
export interface LinkLimits {
  /** Unread bytes of a channel above which a peer without credit is throttled. */
  readonly channelPressureBytes: number
  /** How long a reader may read nothing before the peer is no longer throttled for it. */
  readonly stoppedReaderMs: number
  /** Unread bytes of a channel of a peer without credit; above, this channel is closed. */
  readonly channelUnreadBytes: number
  /** Bytes held in either direction for all links of a peer; above, the channel that holds most is closed. */
  readonly peerBufferBytes: number
  /** Maximum of a credit window. */
  readonly creditWindowBytes: number
  /** Control packets queued for a peer that does not read, with 64 bytes more for each; above, the link is closed. */
  readonly controlBytes: number
  /** Dials of the peer that wait for a response; more are refused. */
  readonly pendingIncomingDials: number
  /** How long a closed channel waits for the response of the peer. */
  readonly closeTimeoutMs: number
  /** How long the peer may read nothing of the last bytes of a closed channel. */
  readonly lastBytesMs: number
  /** How long the peer of a shared link may read nothing of what is queued for it; then the link is closed. */
  readonly stalledLinkMs: number
}

const mebibyte = 1024 * 1024

/** Long frames save headers between two Sallyport processes; grpc-go sends 16 KiB in any case. */
export const maxFrameBytes = 1 * mebibyte

/** For a server with thousands of connections. */
export const defaultLinkLimits: LinkLimits = {
  channelPressureBytes: 1 * mebibyte,
  stoppedReaderMs: 1_000,
  channelUnreadBytes: 64 * mebibyte,
  peerBufferBytes: 256 * mebibyte,
  creditWindowBytes: 16 * mebibyte,
  controlBytes: 4 * mebibyte,
  pendingIncomingDials: 10_000,
  closeTimeoutMs: 10_000,
  lastBytesMs: 60_000,
  stalledLinkMs: 60_000,
}
