import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** A connection of any kind; what only sockets can do is asked of those that can. */
export type PooledConnection = Duplex & Partial<Pick<Socket, 'ref' | 'unref'>>

/** Less than any API server keeps an idle connection, so that we rarely write into a closed one. */
export const idleMs = 30_000

/** Where a pool gets its connections from. */
export interface ConnectionSupply {
  readonly tls: boolean
  readonly retired: boolean
  openHttp1(): Promise<PooledConnection>
}

/**
 * The HTTP/1.1 connections to one place, for Node's http client in place of its own agent: that one
 * forgets its limit while connections are being made by a callback.
 */
export class ConnectionPool {
  readonly protocol: string
  readonly defaultPort: number
  /** Tells Node's client that connections are kept. */
  readonly keepAlive = true
  readonly #supply: ConnectionSupply
  readonly #max: number
  /** The one used last is taken first, so that the others can grow old; each with the timer that ends it. */
  readonly #idle: { readonly socket: PooledConnection; readonly old: NodeJS.Timeout }[] = []
  readonly #waiting: ClientRequest[] = []
  /** How long each server connection may stay idle, where the server has said so. */
  readonly #allowance = new WeakMap<PooledConnection, number>()
  #saidLast: {
    readonly header: string | string[] | undefined
    readonly allowedMs: number | undefined
  } = { header: undefined, allowedMs: undefined }
  #size = 0

  constructor(supply: ConnectionSupply, max: number) {
    this.#supply = supply
    this.#max = max
    this.protocol = supply.tls ? 'https:' : 'http:'
    this.defaultPort = supply.tls ? 443 : 80
  }

  /** Called by Node's http client for every request. */
  addRequest(request: ClientRequest): void {
    const socket = this.#takeIdle()
    if (socket) this.#lend(socket, request)
    else if (this.#size < this.#max) this.#open(request)
    else this.#waiting.push(request)
  }

  /** Closes the connections that carry no request. */
  closeIdle(): void {
    for (const { socket, old } of this.#idle.splice(0)) {
      clearTimeout(old)
      socket.destroy()
    }
  }

  #takeIdle(): PooledConnection | undefined {
    for (let kept = this.#idle.pop(); kept; kept = this.#idle.pop()) {
      const { socket, old } = kept
      clearTimeout(old)
      if (socket.destroyed || !socket.writable) continue
      socket.ref?.()
      return socket
    }
    return undefined
  }

  #lend(socket: PooledConnection, request: ClientRequest, reused = true): void {
    request.reusedSocket = reused
    request.once('response', ({ headers }: IncomingMessage) => {
      const allowed = this.#allowedBy(headers['keep-alive'])
      if (allowed !== undefined) this.#allowance.set(socket, allowed)
    })
    // Any stream will do for Node's client; its types know of sockets only.
    request.onSocket(socket as Socket)
  }

  /** How long a connection may stay idle by this header; nearly always the same text as the last time. */
  #allowedBy(header: string | string[] | undefined): number | undefined {
    if (header === this.#saidLast.header) return this.#saidLast.allowedMs
    const seconds = /timeout=(\d+)/.exec(String(header))?.[1]
    // A second less, since the server counts from its last byte and we from the arrival of it.
    const allowedMs = seconds === undefined ? undefined : (Number(seconds) - 1) * 1000
    this.#saidLast = { header, allowedMs }
    return allowedMs
  }

  #open(request: ClientRequest): void {
    this.#size++
    this.#supply.openHttp1().then(
      (socket) => {
        this.#watch(socket)
        if (!request.destroyed) {
          this.#lend(socket, request, false)
          return
        }
        failWithoutSocket(request)
        this.#release(socket)
      },
      (error: Error) => {
        this.#size--
        failWithoutSocket(request, error)
        this.#serveNext()
      },
    )
  }

  #watch(socket: PooledConnection): void {
    const gone = (): void => {
      this.#size--
      socket.off('close', gone).off('free', free).off('agentRemove', gone)
      this.#serveNext()
    }
    const free = (): void => this.#release(socket)
    // 'free' and 'agentRemove' are how Node's client hands a connection back or takes it away for an upgrade.
    socket.on('close', gone).on('free', free).on('agentRemove', gone)
    socket.on('error', () => {}) // an error of an idle connection is its end and nothing more
  }

  #release(socket: PooledConnection): void {
    if (socket.destroyed || !socket.writable || this.#supply.retired) {
      socket.destroy()
      return
    }
    const next = this.#nextWaiting()
    if (next) {
      this.#lend(socket, next)
      return
    }
    const allowed = Math.min(this.#allowance.get(socket) ?? idleMs, idleMs)
    if (allowed <= 0) {
      socket.destroy()
      return
    }
    socket.unref?.()
    this.#idle.push({ socket, old: setTimeout(() => socket.destroy(), allowed).unref() })
  }

  #nextWaiting(): ClientRequest | undefined {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (!next.destroyed) return next
      failWithoutSocket(next)
    }
    return undefined
  }

  /** A place has become free without a connection. */
  #serveNext(): void {
    const next = this.#nextWaiting()
    if (next) this.addRequest(next)
  }
}

/** A request waits for its connection even to fail; this tells it that there is none, as Node's agent does. */
export function failWithoutSocket(request: ClientRequest, error?: Error): void {
  const waiting: { onSocket(socket: null, error?: Error): void } = request as never
  waiting.onSocket(null, error ?? aborted())
}

const aborted = (): Error => Object.assign(new Error('aborted'), { code: 'ECONNRESET' })
