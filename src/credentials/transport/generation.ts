import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import { unlessAborted } from '../../core/index.ts'
import type { ClientCertificate } from '../credential.ts'
import type { AddressSet } from './addresses.ts'
import { ConnectionPool, type ConnectionSupply } from './connection-pool.ts'
import { dial, makeSecureContext } from './dial.ts'
import { ConnectionRetired } from './errors.ts'
import type { Heartbeat } from './http2-body.ts'
import type { Http2Pool } from './http2-pool.ts'
import type { Proxy } from './outbound-proxy.ts'
import type { TransportTls } from './types.ts'

/** What all generations of one cluster's connections have in common. */
export interface Route {
  readonly addresses: AddressSet
  readonly proxy: Proxy | undefined
  readonly tls: TransportTls
  readonly connectTimeoutMs: number
  readonly maxConnections: number
  readonly heartbeat: Heartbeat
  /** Whether requests go by HTTP/2; undefined until the server has been asked. */
  http2: boolean | undefined
}

/** All connections that prove one identity: no connection outlives it, none is lent to another. */
export class Generation implements ConnectionSupply {
  readonly tls: boolean
  readonly certificate: ClientCertificate | undefined
  /** For requests that end soon. */
  readonly requests: ConnectionPool
  /** For watches and upgrades, which would otherwise take all places of the pool. */
  readonly streams: ConnectionPool
  readonly #route: Route
  #http2: Http2Pool | undefined
  readonly #sockets = new Set<Socket>()
  #context: { readonly caPem: string | undefined; readonly secure: SecureContext } | undefined
  #asking: Promise<void> | undefined
  #spare: Socket | undefined
  #retired = false
  #graceTimer: NodeJS.Timeout | undefined

  constructor(route: Route, certificate: ClientCertificate | undefined) {
    this.tls = route.addresses.all[0].tls
    this.certificate = certificate
    this.#route = route
    this.requests = new ConnectionPool(this, route.maxConnections)
    this.streams = new ConnectionPool(this, Number.POSITIVE_INFINITY)
  }

  get retired(): boolean {
    return this.#retired
  }

  /** The HTTP/2 connections, if the server speaks it; the first to ask finds out. */
  async http2(signal: AbortSignal): Promise<Http2Pool | undefined> {
    if (this.#route.http2 === undefined) await unlessAborted((this.#asking ??= this.#ask()), signal)
    return this.#route.http2 ? (this.#http2 ?? this.#pool()) : undefined
  }

  async openHttp1(): Promise<Socket> {
    const spare = this.#spare
    this.#spare = undefined
    return spare && !spare.destroyed ? spare : this.#open(['http/1.1'])
  }

  /** Closes what carries no request, so that the next one meets the server anew. */
  closeIdle(): void {
    this.#spare?.destroy()
    this.requests.closeIdle()
    this.streams.closeIdle()
    this.#http2?.closeWhenIdle()
  }

  /** Takes no more requests; closes idle connections now and the others after `graceMs`. */
  retire(graceMs: number): void {
    this.#retired = true
    this.closeIdle()
    const cut = (): void => this.cut(new ConnectionRetired(true))
    if (graceMs <= 0) cut()
    else this.#graceTimer ??= setTimeout(cut, graceMs).unref()
  }

  /** Closes everything, upgraded connections too. */
  cut(reason: Error): void {
    this.#retired = true
    clearTimeout(this.#graceTimer)
    this.#http2?.destroy(reason)
    for (const socket of this.#sockets) socket.destroy()
  }

  async #ask(): Promise<void> {
    try {
      const socket = await this.#open(['h2', 'http/1.1'])
      if (isHttp2(socket)) await (await this.#pool()).adopt(socket)
      else this.#keepSpare(socket)
      this.#route.http2 = isHttp2(socket)
    } finally {
      this.#asking = undefined
    }
  }

  /** Loaded only for a server that speaks HTTP/2, since Node's own part of it is not small. */
  async #pool(): Promise<Http2Pool> {
    const { Http2Pool } = await import('./http2-pool.ts')
    const { addresses, heartbeat, maxConnections } = this.#route
    this.#http2 ??= new Http2Pool({
      authority: addresses.all[0].origin,
      heartbeat,
      maxConnections,
      open: () => this.#openHttp2(),
    })
    return this.#http2
  }

  async #openHttp2(): Promise<Socket> {
    const socket = await this.#open(['h2', 'http/1.1'])
    if (isHttp2(socket)) return socket
    // Another address, or a server that was changed: ask again next time.
    this.#route.http2 = undefined
    this.#keepSpare(socket)
    throw new ConnectionRetired(false)
  }

  /** An error of a connection that nobody uses is its end and nothing more. */
  #keepSpare(socket: Socket): void {
    socket.on('error', () => {})
    this.#spare?.destroy()
    this.#spare = socket
  }

  async #open(protocols: readonly string[]): Promise<Socket> {
    if (this.#retired) throw new ConnectionRetired(false)
    const { addresses, proxy, tls, connectTimeoutMs } = this.#route
    const caPem = await tls.trust?.current()
    const secureContext = this.#secureContext(caPem)
    const socket = await addresses.connect((address) =>
      dial(address, {
        proxy,
        secureContext,
        caPem,
        protocols,
        timeoutMs: connectTimeoutMs,
        serverName: tls.serverName,
        insecureSkipVerify: tls.insecureSkipVerify === true,
      }),
    )
    if (this.#retired) {
      socket.destroy()
      throw new ConnectionRetired(false)
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  #secureContext(caPem: string | undefined): SecureContext {
    if (this.#context?.caPem !== caPem || !this.#context)
      this.#context = { caPem, secure: makeSecureContext(caPem, this.certificate) }
    return this.#context.secure
  }
}

const isHttp2 = (socket: Socket): boolean =>
  socket instanceof TLSSocket && socket.alpnProtocol === 'h2'
