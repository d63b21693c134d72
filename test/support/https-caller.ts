import { EventEmitter, once } from 'node:events'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { Agent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { KubeObject } from '../../src/core/index.ts'

/** How a caller proves who it is; nothing for a stranger. */
export interface Credential {
  readonly cert?: string
  readonly key?: string
  readonly token?: string
}

/** A request; an object as body is sent as JSON. */
export interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer | object
}

/** What came back. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON; throws if it is none. */
  readonly object: KubeObject
}

/** One event of a watch. */
export interface WatchedEvent {
  readonly type: string
  readonly object: KubeObject
}

/** A client over real sockets with one credential; HTTP/1.1 unless asked for otherwise. */
export class HttpsCaller {
  readonly #target: { readonly host: string; readonly port: number; readonly ca: string }
  readonly #credential: Credential
  readonly #agent: Agent
  readonly #open = new Set<{ destroy(): void }>()

  constructor(target: { readonly port: number; readonly ca: string }, credential: Credential = {}) {
    this.#target = { host: '127.0.0.1', ...target }
    this.#credential = credential
    this.#agent = new Agent({ keepAlive: true, maxSockets: 100, ...this.#tls() })
  }

  async request(path: string, call: Call = {}): Promise<Answer> {
    const request = this.send(path, call)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return answerOf(response.statusCode ?? 0, response.headers, await text(response))
  }

  get(path: string, headers: Call['headers'] = {}): Promise<Answer> {
    return this.request(path, { headers })
  }

  post(path: string, body: Call['body'] & {}, headers: Call['headers'] = {}): Promise<Answer> {
    return this.request(path, { method: 'POST', body, headers })
  }

  put(path: string, body: Call['body'] & {}, headers: Call['headers'] = {}): Promise<Answer> {
    return this.request(path, { method: 'PUT', body, headers })
  }

  delete(path: string): Promise<Answer> {
    return this.request(path, { method: 'DELETE' })
  }

  /** Sends a request and leaves the rest to the test. */
  send(path: string, call: Call = {}): ClientRequest {
    const { method = 'GET', body } = call
    const isPlain = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
    const bytes = isPlain ? body : JSON.stringify(body)
    const headers = {
      ...this.headers,
      ...(bytes !== undefined && { 'content-type': 'application/json' }),
      ...call.headers,
    }
    const { host, port } = this.#target
    const request = httpsRequest({ host, port, path, method, headers, agent: this.#agent })
    // Node frames the body of a DELETE only if it is told to.
    if (bytes !== undefined && !request.hasHeader('transfer-encoding'))
      request.setHeader('content-length', Buffer.byteLength(bytes))
    return request.end(bytes)
  }

  /** Opens a watch; rejects unless it is answered with 200. */
  async watch(path: string, headers: Call['headers'] = {}): Promise<WatchReader> {
    const request = this.send(path, { headers })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    this.#open.add(response)
    if (response.statusCode === 200) return new WatchReader(response)
    throw new Error(`watch of ${path}: ${response.statusCode} ${await text(response)}`)
  }

  /** A TLS connection on which a test writes what it likes. */
  async socket(options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connectTls({ ...this.#target, ...this.#tls(), ...options })
    this.#open.add(socket)
    await once(socket, 'secureConnect')
    return socket.on('error', () => {}) // what a test expects of a cut it waits for by `close`
  }

  async http2(options: ConnectionOptions = {}): Promise<ClientHttp2Session> {
    const { host, port } = this.#target
    const session = connectHttp2(`https://${host}:${port}`, { ...this.#tls(), ...options })
    this.#open.add(session)
    await once(session, 'connect')
    return session.on('error', () => {})
  }

  /** The headers that carry the credential. */
  get headers(): Record<string, string> {
    const { token } = this.#credential
    return token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  close(): void {
    this.#agent.destroy()
    for (const each of this.#open) each.destroy()
  }

  #tls(): ConnectionOptions {
    const { cert, key } = this.#credential
    return { ca: this.#target.ca, ...(cert !== undefined && { cert }), ...(key && { key }) }
  }
}

/** A request over HTTP/2 and its whole answer. */
export async function requestOn(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body?: string | Buffer,
): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  const [answered] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  return answerOf(Number(answered[':status']), answered, await text(stream))
}

function answerOf(status: number, headers: IncomingHttpHeaders, body: string): Answer {
  return {
    status,
    headers,
    text: body,
    get object(): KubeObject {
      return JSON.parse(body)
    },
  }
}

/** Reads an open watch as fast as it comes, and hands on its events one by one. */
export class WatchReader {
  readonly response: IncomingMessage
  /** Resolves when the stream is over: true if in good order, false if it was cut. */
  readonly ended: Promise<boolean>
  readonly #events: WatchedEvent[] = []
  readonly #news = new EventEmitter()
  #isOver = false

  constructor(response: IncomingMessage) {
    this.response = response
    let rest = ''
    response.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#events.push(JSON.parse(line))
      this.#news.emit('news')
    })
    response.on('error', () => {})
    this.ended = new Promise((resolve) => {
      response.once('close', () => {
        this.#isOver = true
        this.#news.emit('news')
        resolve(response.complete)
      })
    })
  }

  /** How many events have come that nobody has asked for yet. */
  get waiting(): number {
    return this.#events.length
  }

  async next(): Promise<WatchedEvent> {
    for (;;) {
      const event = this.#events.shift()
      if (event) return event
      if (this.#isOver) throw new Error('the watch is over')
      await once(this.#news, 'news')
    }
  }

  /** All events up to the first that is wanted, that one included. */
  async until(wanted: (event: WatchedEvent) => boolean): Promise<WatchedEvent[]> {
    const seen: WatchedEvent[] = []
    for (;;) {
      const event = await this.next()
      seen.push(event)
      if (wanted(event)) return seen
    }
  }

  /** All further events, once the stream is over. */
  async rest(): Promise<WatchedEvent[]> {
    await this.ended
    return this.#events.splice(0)
  }

  close(): void {
    this.response.destroy()
  }
}
