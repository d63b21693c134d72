import type { Socket } from 'node:net'
import { type Clock, excerpt, systemClock, withinTime } from '../../core/index.ts'
import {
  errorCode,
  type HeaderField,
  Http2Connection,
  type Http2Stream,
  type StreamEnding,
} from '../../grpc/http2/index.ts'
import type { Keepalive } from '../../grpc/index.ts'
import {
  decodeGrpcMessage,
  fieldsOf,
  grpcContentType,
  grpcStatus,
  Heartbeat,
  headerOf,
  metadataOf,
} from '../../grpc/index.ts'
import { LinkBroken, LinkRefused, LinkUnreachable } from '../grpc/errors.ts'
import { nameOfPeer, openSocket } from '../grpc/open-socket.ts'
import type { ConnectLinkOptions, LinkSettings } from '../grpc/options.ts'
import { unreachableWords } from '../grpc/unreachable-words.ts'
import {
  agreed,
  type Capability,
  type Carrier,
  type CarrierEvents,
  capabilityHeader,
  defaultLinkLimits,
  formatCapabilities,
  type Link,
  type LinkSide,
  PacketLink,
  parseCapabilities,
} from './index.ts'

/** What differs between the two ends of a stream. */
export interface StreamEnd {
  /** Ends our direction in gRPC's way. */
  finish(): void
  /** Ends both at once. */
  abort(error: Error | undefined): void
  /** Why the stream is gone; nothing if that was in order. */
  verdict(ending: StreamEnding): Error | undefined
}

/** The stream under a carrier, and its connection. */
interface CarrierParts {
  readonly stream: Http2Stream
  readonly connection: Http2Connection
  readonly end: StreamEnd
}

/** A gRPC stream as the carrier of a link. */
class Http2Carrier implements Carrier {
  readonly #parts: CarrierParts
  readonly #heartbeat: Heartbeat
  #reason: Error | undefined

  constructor(parts: CarrierParts, keepalive: Keepalive, clock: Clock) {
    this.#parts = parts
    this.#heartbeat = new Heartbeat(parts.connection, keepalive, clock, () =>
      this.destroy(new LinkBroken('the other end of the link does not answer any more')),
    )
  }

  get backlog(): number {
    return this.#parts.stream.backlog
  }

  get heldBytes(): number {
    return this.#parts.stream.heldBytes
  }

  get roundTripMs(): number {
    return this.#parts.connection.roundTripMs
  }

  /** Learns how far away the peer is, so that windows can grow with the distance. */
  measure(): void {
    this.#heartbeat.ping()
  }

  start(events: CarrierEvents): void {
    const { stream, end } = this.#parts
    stream.start({
      data: (chunk) => events.data(chunk),
      progress: () => events.progress(),
      finished: () => end.finish(),
      closed: (ending) => {
        this.#heartbeat.stop()
        events.ended(this.#reason ?? end.verdict(ending))
      },
    })
  }

  throttle(isOn: boolean): void {
    this.#parts.stream.throttle(isOn)
  }

  allow(bytes: number): void {
    this.#parts.stream.allow(bytes)
  }

  write(parts: readonly Buffer[]): void {
    this.#parts.stream.write(parts)
  }

  end(): void {
    this.#parts.end.finish()
  }

  destroy(error?: Error): void {
    this.#reason ??= error
    this.#parts.end.abort(error)
  }
}

/** Half-open peers are found within a minute; Go servers forbid anything faster. */
const defaultKeepalive: Keepalive = { timeMs: 30_000, timeoutMs: 20_000 }

/** The end of the stream that a link stands on. */
export interface StreamUnderLink extends CarrierParts {
  readonly side: LinkSide
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
}

/** Makes a stream whose headers have been exchanged into a link. */
export function linkOfStream(under: StreamUnderLink, settings: LinkSettings): Link {
  const { side, capabilities, metadata } = under
  const { timeMs, timeoutMs } = settings.keepalive ?? defaultKeepalive
  const isOurs = capabilities.size > 0
  const carrier = new Http2Carrier(
    under,
    { timeMs: isOurs ? timeMs : Math.max(timeMs, defaultKeepalive.timeMs), timeoutMs },
    systemClock,
  )
  // A front end is beside its server, and there is one stream for each of its connections.
  if (side === 'server' || side === 'agent') carrier.measure()
  return new PacketLink({
    carrier,
    side,
    capabilities,
    metadata,
    limits: { ...defaultLinkLimits, ...settings.limits },
    clock: systemClock,
    log: settings.log,
    packets: settings.packets,
    budget: settings.budget,
  })
}

const closedWithoutAnswer =
  'it closed the connection without an answer, as servers do that do not trust our certificate'
const defaultHandshakeTimeoutMs = 10_000
/** How long the other end may take to end a stream that we have ended. */
const closeGraceMs = 2_000

/** As Go's agents: the name that the server proves to have, so that proxies in between can choose by it. */
function authorityOf(options: ConnectLinkOptions): string {
  const { socketPath, tls } = options
  if (socketPath) return 'localhost'
  return (tls !== 'cleartext' && tls.servername) || nameOfPeer(options)
}

function requestFields(options: ConnectLinkOptions): HeaderField[] {
  const { capabilities, metadata } = options
  return [
    [':method', 'POST'],
    [':scheme', options.tls === 'cleartext' ? 'http' : 'https'],
    [':path', options.path ?? '/AgentService/Connect'],
    [':authority', authorityOf(options)],
    ['content-type', grpcContentType],
    ['te', 'trailers'],
    ...fieldsOf(metadata),
    ...(capabilities.length > 0
      ? fieldsOf({ [capabilityHeader]: formatCapabilities(capabilities) })
      : []),
  ]
}

/** The client's end of the one stream of a connection. */
class ClientStream implements StreamEnd {
  readonly connection: Http2Connection
  readonly stream: Http2Stream
  /** The answer's headers; rejects when there is none. */
  readonly answer: Promise<readonly HeaderField[]>
  #trailers: readonly HeaderField[] | undefined
  #isOurs = false

  constructor(socket: Socket, options: ConnectLinkOptions, signal: AbortSignal) {
    this.connection = new Http2Connection(
      socket,
      { side: 'client', maxStreams: 1, clock: systemClock },
      { request: () => {}, idle: () => this.connection.close(), closed: () => {} },
    )
    this.stream = this.connection.open(requestFields(options))
    this.answer = new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        signal.removeEventListener('abort', giveUp)
        reject(new LinkUnreachable(nameOfPeer(options), why))
      }
      const giveUp = (): void => fail('it took too long or was given up')
      signal.addEventListener('abort', giveUp, { once: true })
      let isAnswered = false
      this.stream.observe({
        headers: (fields) => {
          if (isAnswered) this.#trailers = fields
          // An informational answer is followed by the real one.
          if (headerOf(fields, ':status')?.startsWith('1')) return
          isAnswered = true
          signal.removeEventListener('abort', giveUp)
          resolve(fields)
        },
        closed: ({ error }) => fail(error ? unreachableWords(error) : closedWithoutAnswer),
      })
    })
  }

  finish(): void {
    this.#isOurs = true
    this.stream.end()
    setTimeout(() => this.connection.close(), closeGraceMs).unref()
  }

  abort(): void {
    this.#isOurs = true
    this.stream.reset(errorCode.CANCEL)
  }

  verdict({ error, resetCode }: StreamEnding): Error | undefined {
    const trailers = this.#trailers
    const status = Number(headerOf(trailers ?? [], 'grpc-status') ?? grpcStatus.ok)
    if (status !== grpcStatus.ok) {
      const text = decodeGrpcMessage(headerOf(trailers ?? [], 'grpc-message') ?? '')
      return new LinkBroken(`the server ended the link: ${text || `gRPC status ${status}`}`)
    }
    // GOAWAY without an error is how grpc-go says goodbye.
    if (trailers || this.#isOurs || this.connection.wentAway) return undefined
    if (resetCode !== undefined) return new LinkBroken('the server reset the link')
    return error ?? new LinkBroken('the connection to the server was lost')
  }
}

function check(fields: readonly HeaderField[], options: ConnectLinkOptions): void {
  const where = nameOfPeer(options)
  const refusal = headerOf(fields, 'grpc-status')
  if (refusal !== undefined) {
    const text = decodeGrpcMessage(headerOf(fields, 'grpc-message') ?? '')
    throw new LinkRefused(where, Number(refusal), text || `gRPC status ${excerpt(refusal)}`)
  }
  const status = headerOf(fields, ':status')
  if (status !== '200')
    throw new LinkUnreachable(where, `its HTTP status is ${excerpt(status ?? '')}`)
  if (!headerOf(fields, 'content-type')?.startsWith(grpcContentType))
    throw new LinkUnreachable(where, 'it does not speak gRPC')
}

/** Opens a link; rejects with LinkRefused or LinkUnreachable. */
export function connectLink(options: ConnectLinkOptions): Promise<Link> {
  const limitMs = options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs
  return withinTime(limitMs, options.signal, (signal) => openLink(options, signal))
}

async function openLink(options: ConnectLinkOptions, signal: AbortSignal): Promise<Link> {
  const socket = await openSocket(options, signal)
  const end = new ClientStream(socket, options, signal)
  try {
    const fields = await end.answer
    check(fields, options)
    const metadata = metadataOf(fields)
    const theirs = parseCapabilities(metadata[capabilityHeader])
    return linkOfStream(
      {
        stream: end.stream,
        connection: end.connection,
        end,
        side: options.path === '/ProxyService/Proxy' ? 'front-end' : 'agent',
        capabilities: agreed(options.capabilities, theirs),
        metadata,
      },
      options,
    )
  } catch (error) {
    end.connection.destroy()
    throw error
  }
}
