import type { Socket } from 'node:net'
import { systemClock, withinTime } from '../../core/index.ts'
import {
  agreed,
  capabilityHeader,
  formatCapabilities,
  type Link,
  parseCapabilities,
} from '../link/index.ts'
import { LinkBroken, LinkRefused, LinkUnreachable } from './errors.ts'
import { decodeGrpcMessage, grpcStatus } from './grpc-status.ts'
import {
  errorCode,
  type HeaderField,
  Http2Connection,
  type Http2Stream,
  type StreamEnding,
} from './http2/index.ts'
import type { StreamEnd } from './http2-carrier.ts'
import { linkOfStream } from './link-of-stream.ts'
import { fieldsOf, grpcContentType, headerOf, metadataOf } from './metadata.ts'
import { nameOfPeer, openSocket } from './open-socket.ts'
import type { ConnectLinkOptions } from './options.ts'
import { unreachableWords } from './unreachable-words.ts'

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
    throw new LinkRefused(where, Number(refusal), text || `gRPC status ${refusal}`)
  }
  const status = headerOf(fields, ':status')
  if (status !== '200') throw new LinkUnreachable(where, `it answered with HTTP status ${status}`)
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
