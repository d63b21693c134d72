import { type Logger, systemClock, unlessAborted, withinTime } from '../../core/index.ts'
import {
  errorCode,
  type Http2Connection,
  type Http2Stream,
  type StreamClosure,
} from '../../grpc/http2/index.ts'
import {
  abortedReason,
  type ClientStream,
  GrpcConnection,
  GrpcError,
  type GrpcTarget,
  grpcStatus,
  Heartbeat,
  type Keepalive,
  type ServerCall,
  targetName,
  UnreachableError,
} from '../../grpc/index.ts'
import type { BufferBudget } from './buffer-budget.ts'
import { LinkBroken, LinkRefused, LinkUnreachable } from './errors.ts'
import { defaultLinkLimits, type LinkLimits, maxFrameBytes } from './limits.ts'
import {
  type Capability,
  type Carrier,
  type CarrierEvents,
  capabilityHeader,
  commonCapabilities,
  formatCapabilities,
  type Link,
  type LinkSide,
  type PacketTally,
  parseCapabilities,
} from './link.ts'
import { PacketLink } from './packet-link.ts'

/** The two streaming methods of Konnectivity. */
export type StreamPath = '/AgentService/Connect' | '/ProxyService/Proxy'

/** Options of both ends of a link. */
export interface LinkOptions {
  /** Extensions of Konnectivity's protocol to offer. */
  readonly capabilities: readonly Capability[]
  readonly log: Logger
  /** Default: 30 s and 20 s. */
  readonly keepalive?: Keepalive
  /** How long connecting and authentication may take; default 10 s. */
  readonly handshakeTimeoutMs?: number
  readonly limits?: Partial<LinkLimits>
  /** Counts every packet. */
  readonly packets?: PacketTally
  /** Shared by all links of a peer; default: one for each link. */
  readonly budget?: BufferBudget
}

/** A tunnel server and how to open a link to it. */
export interface ConnectLinkOptions extends LinkOptions, Omit<GrpcTarget, 'maxFrameBytes'> {
  /** Agents use `/AgentService/Connect`, the default; front ends use `/ProxyService/Proxy`. */
  readonly path?: StreamPath
  readonly metadata: Readonly<Record<string, string>>
  /** Aborts connecting; an open link is closed by its `close`. */
  readonly signal: AbortSignal
}

/** The gRPC call under a link. */
export interface LinkCall {
  readonly stream: Http2Stream
  readonly connection: Http2Connection
  /** Ends our direction. */
  finish(): void
  /** Closes both directions at once. */
  abort(error: Error | undefined): void
  /** The stream has closed: returns why, or undefined if that was orderly. */
  closed(closure: StreamClosure): Error | undefined
}

/** The call of an authenticated peer at a server. */
export class ServerLinkCall implements LinkCall {
  readonly stream: Http2Stream
  readonly connection: Http2Connection
  readonly #call: ServerCall
  #isFinished = false

  constructor(call: ServerCall) {
    this.#call = call
    this.stream = call.stream
    this.connection = call.connection
  }

  finish(): void {
    this.#isFinished = true
    this.#call.end(grpcStatus.ok)
  }

  abort(error: Error | undefined): void {
    this.#call.abort(grpcStatus.unknown, error?.message)
    // A peer that does not respond does not read the trailers either.
    if (error instanceof LinkBroken) this.connection.destroy(error)
  }

  closed({ error, resetCode }: StreamClosure): Error | undefined {
    // A Go client that is done cancels its stream or sends GOAWAY.
    if (this.#isFinished || this.connection.hasShutDown) return undefined
    if (resetCode === errorCode.CANCEL || resetCode === errorCode.NO_ERROR) return undefined
    if (resetCode !== undefined) return new LinkBroken('peer reset the stream of the link')
    return error ?? new LinkBroken('connection of the peer was lost')
  }
}

/** How long a server may take to end a stream that we have ended. */
const closeGraceMs = 2_000

/** The only call on a connection of a client. */
class ClientLinkCall implements LinkCall {
  readonly stream: Http2Stream
  readonly connection: Http2Connection
  readonly #client: ClientStream
  #isFinished = false

  constructor(client: ClientStream) {
    this.#client = client
    this.stream = client.stream
    this.connection = client.connection
  }

  finish(): void {
    this.#isFinished = true
    this.stream.end()
    setTimeout(() => this.connection.close(), closeGraceMs).unref()
  }

  abort(): void {
    this.#isFinished = true
    this.stream.cancel()
  }

  closed({ error, resetCode }: StreamClosure): Error | undefined {
    this.connection.close()
    const { status } = this.#client
    if (status && status.grpcStatus !== grpcStatus.ok)
      return new LinkBroken(`server ended the link: ${status.message}`)
    // grpc-go shuts down with GOAWAY and without an error.
    if (status || this.#isFinished || this.connection.hasShutDown) return undefined
    if (resetCode !== undefined) return new LinkBroken('server reset the stream of the link')
    return error ?? new LinkBroken('connection to the server was lost')
  }
}

/** A gRPC stream as the carrier of a link. */
class GrpcCarrier implements Carrier {
  readonly #call: LinkCall
  readonly #heartbeat: Heartbeat
  #closeReason: Error | undefined

  constructor(call: LinkCall, keepalive: Keepalive) {
    this.#call = call
    this.#heartbeat = new Heartbeat(call.connection, keepalive, systemClock, () =>
      this.destroy(new LinkBroken('peer does not respond to keepalive pings')),
    )
  }

  get backlog(): number {
    return this.#call.stream.backlog
  }

  get heldBytes(): number {
    return this.#call.stream.heldBytes
  }

  get roundTripMs(): number {
    return this.#call.connection.roundTripMs
  }

  start(events: CarrierEvents): void {
    this.#call.stream.start({
      data: (chunk) => events.data(chunk),
      progress: () => events.progress(),
      finished: () => this.#call.finish(),
      closed: (closure) => {
        this.#heartbeat.stop()
        const error = this.#call.closed(closure)
        events.ended(this.#closeReason ?? error)
      },
    })
  }

  throttle(isOn: boolean): void {
    this.#call.stream.throttle(isOn)
  }

  allow(bytes: number): void {
    this.#call.stream.allow(bytes)
  }

  write(parts: readonly Buffer[]): void {
    this.#call.stream.write(parts)
  }

  end(): void {
    this.#call.finish()
  }

  destroy(error?: Error): void {
    this.#closeReason ??= error
    this.#call.abort(error)
  }
}

/** Half-open connections are detected within a minute; Go servers do not allow shorter intervals. */
const defaultKeepalive: Keepalive = { timeMs: 30_000, timeoutMs: 20_000 }

/** What the two ends of a call have agreed on. */
export interface LinkTerms {
  readonly side: LinkSide
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
}

/** Creates a link on a call whose headers have been exchanged. */
export function createLink(call: LinkCall, terms: LinkTerms, options: LinkOptions): Link {
  const { side, capabilities, metadata } = terms
  const { timeMs, timeoutMs } = options.keepalive ?? defaultKeepalive
  const isSallyport = capabilities.size > 0
  const carrier = new GrpcCarrier(call, {
    timeMs: isSallyport ? timeMs : Math.max(timeMs, defaultKeepalive.timeMs),
    timeoutMs,
  })
  // Windows grow with the round trip. A front end is on the same machine and has a stream per connection.
  if (side === 'server' || side === 'agent') call.connection.ping()
  return new PacketLink({
    carrier,
    side,
    capabilities,
    metadata,
    limits: { ...defaultLinkLimits, ...options.limits },
    clock: systemClock,
    log: options.log,
    packets: options.packets,
    budget: options.budget,
  })
}

const defaultHandshakeTimeoutMs = 10_000

/**
 * Opens a link to a tunnel server.
 * @throws LinkRefused if the server refused it
 * @throws LinkUnreachable
 */
export function connectLink(options: ConnectLinkOptions): Promise<Link> {
  const timeoutMs = options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs
  return withinTime(timeoutMs, options.signal, (signal) => openLink(options, signal))
}

async function openLink(options: ConnectLinkOptions, signal: AbortSignal): Promise<Link> {
  const server = targetName(options)
  let connection: GrpcConnection | undefined
  try {
    connection = await GrpcConnection.connect({ ...options, maxFrameBytes }, signal)
    return await requestLink(connection, options, signal)
  } catch (error) {
    connection?.destroy()
    if (error instanceof GrpcError) throw new LinkRefused(server, error.grpcStatus, error.text)
    if (error instanceof UnreachableError)
      throw new LinkUnreachable(server, error.reason, error.cause)
    throw signal.aborted ? new LinkUnreachable(server, abortedReason) : error
  }
}

async function requestLink(
  connection: GrpcConnection,
  options: ConnectLinkOptions,
  signal: AbortSignal,
): Promise<Link> {
  const { capabilities, path = '/AgentService/Connect' } = options
  const client = connection.openStream(path, {
    ...options.metadata,
    ...(capabilities.length > 0 && { [capabilityHeader]: formatCapabilities(capabilities) }),
  })
  const metadata = await unlessAborted(client.response, signal)
  const { status } = client
  if (status) throw new LinkRefused(targetName(options), status.grpcStatus, status.message)
  const offered = parseCapabilities(metadata[capabilityHeader])
  return createLink(
    new ClientLinkCall(client),
    {
      side: path === '/ProxyService/Proxy' ? 'front-end' : 'agent',
      capabilities: commonCapabilities(capabilities, offered),
      metadata,
    },
    options,
  )
}
