import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Logger } from '../../core/index.ts'
import type { Keepalive } from '../../grpc/index.ts'
import type { BufferBudget, Capability, LinkLimits, PacketTally } from '../link/index.ts'
/** The two streams that Konnectivity's protocol knows, by path. */
export type StreamPath = '/AgentService/Connect' | '/ProxyService/Proxy'

/** What the outer TLS connection to a tunnel server needs. */
export interface LinkTls {
  /** PEM; the system's roots without it. */
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  /** The name to ask for and to verify; `host` without it. */
  readonly servername?: string
  /** Offered before h2. */
  readonly alpn?: readonly string[]
}

/** What both ends of a link may be told. */
export interface LinkSettings {
  /** What to offer beyond Konnectivity's protocol. */
  readonly capabilities: readonly Capability[]
  readonly log: Logger
  /** 30 s and 20 s without it. */
  readonly keepalive?: Keepalive
  /** How long connecting and its checks may take; 10 s without it. */
  readonly handshakeTimeoutMs?: number
  readonly limits?: Partial<LinkLimits>
  /** Hears of every packet. */
  readonly packets?: PacketTally
  /** Shared by links of one peer; each has its own without it. */
  readonly budget?: BufferBudget
}

/** Where and how to open a link. */
export interface ConnectLinkOptions extends LinkSettings {
  readonly host: string
  readonly port: number
  /** A UNIX socket instead of host and port. */
  readonly socketPath?: string
  /** Opens the connection below TLS, through a proxy for example; by TCP to host and port without it. */
  readonly open?: (signal: AbortSignal) => Promise<Socket>
  readonly tls: LinkTls | 'cleartext'
  /** Agents speak at `/AgentService/Connect`, the default; front ends at `/ProxyService/Proxy`. */
  readonly path?: StreamPath
  readonly metadata: Readonly<Record<string, string>>
  /** Gives up connecting; an open link is closed by its own `close`. */
  readonly signal: AbortSignal
}

/** A stream that asks to be let in. */
export interface LinkRequest {
  /** Names in lower case, values in the order they came. */
  readonly metadata: Readonly<Record<string, readonly string[]>>
  /** For the peer's certificate and address. */
  readonly socket: Socket | TLSSocket
  /** Aborts when the peer goes away or the handshake takes too long. */
  readonly signal: AbortSignal
}

/** Let in, with metadata for the peer, or not, with a gRPC status (2 is what a plain Go error becomes). */
export type Admission =
  | { readonly metadata: Readonly<Record<string, string>> }
  | { readonly grpcStatus: number; readonly message: string }
