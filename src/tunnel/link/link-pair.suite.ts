import type { Capability, Link, LinkLimits } from './index.ts'

/** What a pair of links for tests may be told. */
export interface LinkPairOptions {
  /** What both ends offer; everything without it. */
  readonly capabilities?: readonly Capability[]
  readonly limits?: Partial<LinkLimits>
}

/** A server's and an agent's end of one link over a real HTTP/2 connection; neither is started. */
export interface LinkPair {
  /** The server's end, which dials. */
  readonly dialer: Link
  /** The agent's end, which is dialled (and dials as well if `rdial` is agreed on). */
  readonly acceptor: Link
  close(): Promise<void>
}

/** Two ends of a link in this process, for tests. */
export declare function linkPair(options?: LinkPairOptions): Promise<LinkPair>
