import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { ConnectionReset } from './try-failed.ts'

/** Less than any API server keeps an idle connection, so that we rarely write into a closed one. */
export const idleMs = 30_000

/** Where a pool gets its connections from. */
export interface ConnectionSupply {
  readonly tls: boolean
  readonly retired: boolean
  openHttp1(): Promise<Socket>
}

/**
 * The HTTP/1.1 connections of one identity, for Node's http client in place of its own agent: that one
 * forgets its limit while connections are being made by a callback.
 */
export class ConnectionPool {
  readonly protocol: string
  readonly defaultPort: number
  /** Tells Node's client that connections are kept. */
  readonly keepAlive = true
  readonly #supply: ConnectionSupply
  readonly #max: number
  /** The one used last is taken first, so that the others can grow old. */
  readonly #idle: Socket[] = []
  readonly #waiting: ClientRequest[] = []
  /** How long each server connection may stay idle, where the server has said so. */
  readonly #allowance = new WeakMap<Socket, number>()
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
    for (const socket of this.#idle.splice(0)) socket.destroy()
  }

  #takeIdle(): Socket | undefined {
    for (let socket = this.#idle.pop(); socket; socket = this.#idle.pop()) {
      if (socket.destroyed || !socket.writable) continue
      socket.setTimeout(0)
      socket.ref()
      return socket
    }
    return undefined
  }

  #lend(socket: Socket, request: ClientRequest, reused = true): void {
    request.reusedSocket = reused
    request.once('response', ({ headers }: IncomingMessage) => {
      const allowed = this.#allowedBy(headers['keep-alive'])
      if (allowed !== undefined) this.#allowance.set(socket, allowed)
    })
    request.onSocket(socket)
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

  #watch(socket: Socket): void {
    const gone = (): void => {
      this.#size--
      socket.off('close', gone).off('free', free).off('agentRemove', gone).off('timeout', old)
      this.#serveNext()
    }
    const free = (): void => this.#release(socket)
    const old = (): void => {
      if (this.#idle.includes(socket)) socket.destroy()
    }
    // 'free' and 'agentRemove' are how Node's client hands a connection back or takes it away for an upgrade.
    socket.on('close', gone).on('free', free).on('agentRemove', gone).on('timeout', old)
    socket.on('error', () => {}) // an error of an idle connection is its end and nothing more
  }

  #release(socket: Socket): void {
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
    socket.setTimeout(allowed)
    socket.unref()
    this.#idle.push(socket)
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
  waiting.onSocket(null, error ?? new ConnectionReset('aborted'))
}
