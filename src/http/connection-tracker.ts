import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { aborted } from '../core/index.ts'

/** Knows every open connection of a server and which of them are at work, so that it can be drained. */
export class Connections {
  readonly #raw = new Set<Socket>()
  readonly #sessions = new Set<ServerHttp2Session>()
  /** HTTP/1.1 connections with what is going on in them; nothing means that they are idle. */
  readonly #http1 = new Map<Socket, (ServerResponse | 'upgrade')[]>()
  readonly #empty: (() => void)[] = []
  readonly #maxPipelinedRequests: number
  #draining = false

  constructor(maxPipelinedRequests: number) {
    this.#maxPipelinedRequests = maxPipelinedRequests
  }

  /** Connections that are open, handshakes included. */
  get size(): number {
    return this.#raw.size
  }

  /** Counts a connection from its first packet on. */
  accepted(socket: Socket): void {
    this.#raw.add(socket)
    socket.once('close', () => {
      this.#raw.delete(socket)
      if (this.#raw.size === 0) for (const resolve of this.#empty.splice(0)) resolve()
    })
  }

  /** Takes note of a connection that has chosen HTTP/1.1. */
  openedHttp1(socket: Socket): void {
    if (this.#draining) {
      socket.destroy()
      return
    }
    const work: (ServerResponse | 'upgrade')[] = []
    this.#http1.set(socket, work)
    socket.once('close', () => {
      this.#http1.delete(socket)
      // Node closes the response that has the socket; pipelined ones behind it would stay open for ever.
      setImmediate(() => {
        for (const response of work.splice(0)) if (response !== 'upgrade') abandon(response)
      })
    })
  }

  /** Takes note of a connection that has chosen HTTP/2. */
  openedHttp2(session: ServerHttp2Session): void {
    this.#sessions.add(session)
    session.once('close', () => this.#sessions.delete(session))
    if (this.#draining) session.close()
  }

  /** Takes note of a request; HTTP/2 sessions know their own. Closes a connection with too many at a time. */
  began(request: IncomingMessage, response: ServerResponse): void {
    if (request.httpVersionMajor !== 1) return
    const { socket } = request
    const work = this.#http1.get(socket)
    work?.push(response)
    if (work && work.length > this.#maxPipelinedRequests) socket.destroy()
    if (this.#draining) response.shouldKeepAlive = false
    response.on('close', () => {
      const place = work?.indexOf(response) ?? -1
      if (place >= 0) work?.splice(place, 1)
      if (this.#draining) this.#endIfIdle(socket)
    })
  }

  /**
   * Takes note of a connection that now speaks another protocol; it lasts until it is closed. False if a request on it
   * is not answered yet: the answer to the upgrade would be taken for that one's.
   */
  upgraded(socket: Socket): boolean {
    const work = this.#http1.get(socket)
    const isFree = work?.length === 0
    work?.push('upgrade')
    return isFree
  }

  /** Closes what is idle, lets the rest finish, and cuts it when `deadline` aborts. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#draining = true
    for (const session of this.#sessions) session.close()
    for (const [socket, work] of this.#http1) {
      for (const item of work) if (item !== 'upgrade') item.shouldKeepAlive = false
      this.#endIfIdle(socket)
    }
    await Promise.race([this.#closed(), aborted(deadline)])
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#raw) socket.destroy()
    await this.#closed()
  }

  #endIfIdle(socket: Socket): void {
    if (this.#http1.get(socket)?.length === 0) socket.destroySoon()
  }

  async #closed(): Promise<void> {
    if (this.#raw.size === 0) return
    await new Promise<void>((resolve) => this.#empty.push(resolve))
  }
}

/** Ends a response that will never get its connection. */
function abandon(response: ServerResponse): void {
  response.destroy()
  response.emit('close')
}
