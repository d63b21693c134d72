import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { systemErrorCode } from '../../core/index.ts'
import type { ClusterResponse } from '../cluster-request.ts'
import { idleMs } from './connection-pool.ts'
import { Http2Body } from './http2-body.ts'
import { releasedBy } from './released-by.ts'
import { ConnectionReset, TryFailed } from './try-failed.ts'

/** Of one answer that nobody reads yet, and of all answers of a connection together. */
const streamWindow = 4 * 1024 * 1024
const connectionWindow = 16 * 1024 * 1024
/** In megabytes; with Node's 10 one unread answer would make the next request fail. */
const sessionMemory = 1_000

/** What a connection that turns out to be closed reports. */
const closedCodes: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_STREAM_CANCEL',
])

/** A request in HTTP/2's terms. */
export interface Http2Request {
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: Buffer | Readable | undefined
  readonly signal: AbortSignal
}

/** The HTTP/2 connections of one identity; another one is opened when all streams of the others are taken. */
export class Http2Pool {
  readonly #authority: string
  readonly #open: () => Promise<Socket>
  readonly #sessions = new Set<ClientHttp2Session>()
  readonly #streams = new WeakMap<ClientHttp2Session, number>()
  /** Those that have answered before. */
  readonly #proven = new WeakSet<ClientHttp2Session>()
  #opening: Promise<ClientHttp2Session> | undefined

  constructor(authority: string, open: () => Promise<Socket>) {
    this.#authority = authority
    this.#open = open
  }

  /** Takes over a connection that has agreed on HTTP/2. */
  adopt(socket: Socket): ClientHttp2Session {
    const session = connect(this.#authority, {
      createConnection: () => socket,
      maxSessionMemory: sessionMemory,
      settings: { enablePush: false, initialWindowSize: streamWindow },
    })
    session.setLocalWindowSize(connectionWindow)
    const gone = (): void => void this.#sessions.delete(session)
    session.on('error', () => {}).on('close', gone)
    session.setTimeout(idleMs, () => {
      if (this.#load(session) === 0) session.close()
    })
    this.#sessions.add(session)
    return session
  }

  /** Sends a request and returns the head of its answer; fails with TryFailed once it has a connection. */
  async request(request: Http2Request): Promise<ClusterResponse> {
    const session = this.#free() ?? (await releasedBy(request.signal, this.#next()))
    const reused = this.#proven.has(session)
    try {
      const response = await this.#exchange(session, request)
      this.#proven.add(session)
      return response
    } catch (error) {
      throw new TryFailed(error, reused && closedCodes.has(systemErrorCode(error) ?? ''))
    }
  }

  #exchange(session: ClientHttp2Session, request: Http2Request): Promise<ClusterResponse> {
    const stream = session.request(request.headers as OutgoingHttpHeaders, {
      endStream: request.body === undefined,
    })
    this.#count(session, stream)
    return answerTo(stream, request)
  }

  /** Takes no more requests and ends each connection with its last answer. */
  closeWhenIdle(): void {
    for (const session of this.#sessions) session.close()
  }

  destroy(error: Error): void {
    for (const session of this.#sessions) session.destroy(error)
  }

  #load(session: ClientHttp2Session): number {
    return this.#streams.get(session) ?? 0
  }

  #free(): ClientHttp2Session | undefined {
    for (const session of this.#sessions) {
      const most = session.remoteSettings?.maxConcurrentStreams ?? Number.POSITIVE_INFINITY
      if (!session.closed && !session.destroyed && this.#load(session) < most) return session
    }
    return undefined
  }

  #next(): Promise<ClientHttp2Session> {
    this.#opening ??= this.#another()
    return this.#opening
  }

  async #another(): Promise<ClientHttp2Session> {
    try {
      return this.adopt(await this.#open())
    } finally {
      this.#opening = undefined
    }
  }

  /** A connection without a request must not keep the process alive. */
  #count(session: ClientHttp2Session, stream: ClientHttp2Stream): void {
    const load = this.#load(session)
    if (load === 0) session.ref()
    this.#streams.set(session, load + 1)
    stream.once('close', () => {
      const left = this.#load(session) - 1
      this.#streams.set(session, left)
      if (left === 0 && !session.destroyed) session.unref()
    })
  }
}

function answerTo(
  stream: ClientHttp2Stream,
  { body, signal }: Http2Request,
): Promise<ClusterResponse> {
  return new Promise((resolve, reject) => {
    let answer: Http2Body | undefined
    // Not by Node's option, which costs more than the rest of a request.
    const abort = (): void => {
      reject(signal.reason)
      answer?.destroy(new ConnectionReset('aborted', signal.reason))
      stream.close(constants.NGHTTP2_CANCEL)
    }
    signal.addEventListener('abort', abort, { once: true })
    stream.once('response', (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
      const { ':status': status = 0, ...rest } = headers
      answer = new Http2Body(stream)
      resolve({ status, headers: rest, body: answer })
    })
    stream.on('error', reject) // stays: a cut after the answer's head is reported here as well
    stream.once('close', () => {
      signal.removeEventListener('abort', abort)
      if (!answer) reject(new ConnectionReset('the connection was closed'))
    })
    if (Buffer.isBuffer(body)) stream.end(body)
    else if (body) body.on('error', (error) => stream.destroy(error)).pipe(stream)
  })
}
