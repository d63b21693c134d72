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
import { onAbort, systemErrorCode, unlessAborted } from '../../core/index.ts'
import type { ClusterResponse } from '../credential.ts'
import { idleMs } from './connection-pool.ts'
import { ConnectionReset, ConnectionRetired, TryFailed } from './errors.ts'
import { type Heartbeat, Http2Body, startHeartbeat } from './http2-body.ts'

/** Of one answer that nobody reads yet, and of all answers of a connection together. */
const streamWindow = 4 * 1024 * 1024
const connectionWindow = 16 * 1024 * 1024
/** How long a server may take to send its settings. */
const settingsMs = 10_000
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

/** What a pool is made of. */
export interface Http2PoolOptions {
  readonly authority: string
  readonly heartbeat: Heartbeat
  /** At most so many connections; requests beyond their streams wait. */
  readonly maxConnections: number
  open(): Promise<Socket>
}

/** The HTTP/2 connections of one identity; another one is opened when all streams of the others are taken. */
export class Http2Pool {
  readonly #options: Http2PoolOptions
  readonly #sessions = new Set<ClientHttp2Session>()
  /** Those whose server has said how many streams it allows. */
  readonly #ready = new WeakSet<ClientHttp2Session>()
  readonly #streams = new WeakMap<ClientHttp2Session, number>()
  /** Those that have answered before. */
  readonly #proven = new WeakSet<ClientHttp2Session>()
  readonly #stopHeartbeat = new WeakMap<ClientHttp2Session, () => void>()
  #opening: Promise<void> | undefined
  #waiting: (() => void)[] = []

  constructor(options: Http2PoolOptions) {
    this.#options = options
  }

  /** Takes over a connection that has agreed on HTTP/2, and waits until its server has spoken. */
  async adopt(socket: Socket): Promise<void> {
    const session = connect(this.#options.authority, {
      createConnection: () => socket,
      maxSessionMemory: sessionMemory,
      settings: { enablePush: false, initialWindowSize: streamWindow },
    })
    session.setLocalWindowSize(connectionWindow)
    session
      .on('error', () => {})
      .on('close', () => {
        this.#sessions.delete(session)
        this.#wakeAll()
      })
    session.setTimeout(idleMs, () => {
      if (this.#load(session) === 0) session.close()
    })
    this.#sessions.add(session)
    await settingsOf(session)
    this.#ready.add(session)
  }

  /** Sends a request and returns the head of its answer; fails with TryFailed once it has a connection. */
  async request(request: Http2Request): Promise<ClusterResponse> {
    const session = this.#take() ?? (await this.#wait(request.signal))
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
    try {
      const stream = session.request(request.headers as OutgoingHttpHeaders, {
        endStream: request.body === undefined,
      })
      stream.once('close', () => this.#leave(session))
      return answerTo(stream, request)
    } catch (error) {
      this.#leave(session)
      throw error
    }
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

  /** A place on a connection that has one, taken at once so that nobody else gets it. */
  #take(): ClientHttp2Session | undefined {
    for (const session of this.#sessions) {
      if (session.closed || session.destroyed || !this.#ready.has(session)) continue
      if (this.#load(session) >= mostStreams(session)) continue
      this.#enter(session)
      return session
    }
    return undefined
  }

  async #wait(signal: AbortSignal): Promise<ClientHttp2Session> {
    for (;;) {
      const isFull = !this.#opening && this.#sessions.size >= this.#options.maxConnections
      await unlessAborted(isFull ? this.#place() : (this.#opening ??= this.#another()), signal)
      const session = this.#take()
      if (session) return session
    }
  }

  #place(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** All of them, since one of them may have gone away meanwhile; whoever finds no place waits again. */
  #wakeAll(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  async #another(): Promise<void> {
    try {
      await this.adopt(await this.#options.open())
    } finally {
      this.#opening = undefined
    }
  }

  /** A connection without a request must not keep the process alive, nor be asked whether it is alive. */
  #enter(session: ClientHttp2Session): void {
    const load = this.#load(session)
    this.#streams.set(session, load + 1)
    if (load > 0) return
    session.ref()
    this.#stopHeartbeat.set(session, startHeartbeat(session, this.#options.heartbeat))
  }

  #leave(session: ClientHttp2Session): void {
    const left = this.#load(session) - 1
    this.#streams.set(session, left)
    this.#wakeAll()
    if (left > 0) return
    this.#stopHeartbeat.get(session)?.()
    if (!session.destroyed) session.unref()
  }
}

const mostStreams = (session: ClientHttp2Session): number =>
  session.remoteSettings?.maxConcurrentStreams ?? Number.POSITIVE_INFINITY

/** Before its settings have come, more streams than the server allows would wait there without an end. */
function settingsOf(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    const silent = new ConnectionReset('the server has not begun to speak HTTP/2')
    const timer = setTimeout(() => session.destroy(silent), settingsMs)
    session.once('remoteSettings', () => {
      clearTimeout(timer)
      if (mostStreams(session) > 0) resolve()
      else session.destroy(new ConnectionReset('the server allows no streams'))
    })
    // Nothing has been sent yet, whatever the connection was cut for.
    session.once('error', (error: Error) =>
      reject(error instanceof ConnectionRetired ? new ConnectionRetired(false) : error),
    )
    session.once('close', () => {
      clearTimeout(timer)
      reject(new ConnectionReset('the connection was closed'))
    })
  })
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
    const forget = onAbort(signal, abort)
    stream.once('response', (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
      const { ':status': status = 0, ...rest } = headers
      answer = new Http2Body(stream)
      resolve({ status, headers: rest, body: answer })
    })
    stream.on('error', reject) // stays: a cut after the answer's head is reported here as well
    stream.once('close', () => {
      forget()
      if (!answer) reject(new ConnectionReset('the connection was closed'))
    })
    if (Buffer.isBuffer(body)) stream.end(body)
    else if (body) body.on('error', (error) => stream.destroy(error)).pipe(stream)
  })
}
