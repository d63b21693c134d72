/** How much a link keeps in memory before it acts; all in bytes unless named otherwise. */
export interface LinkLimits {
  /** Unread bytes of a channel from which on an end that knows no credit is slowed down. */
  readonly channelPressureBytes: number
  /** How long a reader may stand still before the other end is no longer slowed down for it. */
  readonly stoppedReaderMs: number
  /** Unread bytes that a channel may hold when the other end knows no credit; more ends that channel alone. */
  readonly channelUnreadBytes: number
  /** Bytes that wait in either direction over all links of a peer; more ends the channel that holds most. */
  readonly peerBufferBytes: number
  /** The most that a credit window grows to. */
  readonly creditWindowBytes: number
  /** Small packets that wait because the other end does not read, 64 bytes more for each; more ends the link. */
  readonly controlBytes: number
  /** Dials of the other end that wait for an answer; more are refused. */
  readonly pendingIncomingDials: number
  /** How long a closed channel waits for the other end's word. */
  readonly closeAnswerMs: number
  /** How long the other end may take nothing of the last bytes of a closed channel. */
  readonly lastBytesMs: number
  /** How long the other end of a shared link may take nothing of what waits for it; longer ends the link. */
  readonly stalledLinkMs: number
}

const mebibyte = 1024 * 1024

/** Long frames save headers between two Sallyport processes; grpc-go sends 16 KiB in any case. */
export const maxFrameBytes = 1 * mebibyte

/** Limits that suit a server with thousands of connections. */
export const defaultLinkLimits: LinkLimits = {
  channelPressureBytes: 1 * mebibyte,
  stoppedReaderMs: 1_000,
  channelUnreadBytes: 64 * mebibyte,
  peerBufferBytes: 256 * mebibyte,
  creditWindowBytes: 16 * mebibyte,
  controlBytes: 4 * mebibyte,
  pendingIncomingDials: 10_000,
  closeAnswerMs: 10_000,
  lastBytesMs: 60_000,
  stalledLinkMs: 60_000,
}
