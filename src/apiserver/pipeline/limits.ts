import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { SallyportError } from '../../core/index.ts'

/** What a single request may bring along before anybody looks at it. */
export interface RequestLimits {
  readonly maxUrlLength: number
  readonly maxHeaderCount: number
  readonly maxHeaderBytes: number
  readonly maxBodyBytes: number
  /** A client with more than `minWatchedBytes` to read must read something within this time. */
  readonly maxWriteStallMs: number
}

/** Less than this fits into the buffers of the system; its deadline is that of the request. */
export const minWatchedBytes = 64 * 1024

/** Wide enough for every stock client, too narrow to be a weapon. */
export const defaultRequestLimits: RequestLimits = {
  maxUrlLength: 16 * 1024,
  maxHeaderCount: 1_000,
  maxHeaderBytes: 64 * 1024,
  maxBodyBytes: 3 * 2 ** 20,
  maxWriteStallMs: 20_000,
}

/** Of the origins that browsers have proved to be this server's: kept in memory, for as long as a page may be open. */
export const maxOriginUsers = 1_000
export const maxOriginsPerUser = 8
export const maxOriginLength = 256
export const provenOriginMs = 12 * 3_600_000

/** A request outgrew a limit for which Kubernetes has no reason of its own, only an HTTP code. */
export class LimitExceeded extends SallyportError {
  readonly code = 'LIMIT_EXCEEDED'
  readonly httpCode: 414 | 431

  constructor(httpCode: 414 | 431, message: string) {
    super(message)
    this.httpCode = httpCode
  }
}

/** Throws when URL or headers are larger than allowed. */
export function checkRequestSize(
  request: { readonly url?: string | undefined; readonly rawHeaders: readonly string[] },
  limits: RequestLimits,
): void {
  if ((request.url ?? '').length > limits.maxUrlLength) {
    throw new LimitExceeded(414, `the URL is longer than ${limits.maxUrlLength} characters`)
  }
  const headers = request.rawHeaders
  if (headers.length > 2 * limits.maxHeaderCount) {
    throw new LimitExceeded(431, `the request has more than ${limits.maxHeaderCount} headers`)
  }
  let bytes = 0
  for (const text of headers) bytes += text.length
  if (bytes > limits.maxHeaderBytes) {
    throw new LimitExceeded(431, `the headers are larger than ${limits.maxHeaderBytes} bytes`)
  }
}

/** How many connections may be open at once. */
export interface ConnectionLimits {
  readonly total: number
  readonly perAddress: number
}

/** The part of all connections that may be without a credential: they cannot take the room of users. */
const unauthenticatedShare = 0.25

/**
 * Counts the connections of a server and drops those that are too many. A connection is unauthenticated
 * until a request on it has proven an identity. When there are too many, the oldest unauthenticated one
 * of the address with most of them is closed: an address with few connections always gets a new one.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits
  readonly #perAddress = new Map<string, number>()
  /** By address; the oldest first. */
  readonly #unauthenticated = new Map<string, Set<Socket>>()
  /** Unauthenticated connections by where they come from: before TLS and after it, they are two objects. */
  readonly #byPeer = new Map<string, Socket>()
  readonly #authenticated = new WeakSet<object>()
  #open = 0
  #dropped = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#open
  }

  /** Connections that were dropped since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Connections without a credential that are open now. */
  get unauthenticated(): number {
    return this.#byPeer.size
  }

  /** For a server's `connection` event. Nothing is written: before TLS there is no way to explain. */
  readonly admit = (socket: Socket): void => {
    const address = socketBucket(socket.remoteAddress ?? '')
    const fromThere = this.#perAddress.get(address) ?? 0
    const { total, perAddress } = this.#limits
    if (fromThere >= perAddress || (this.#open >= total && !this.#evict())) {
      this.#dropped++
      socket.destroy()
      return
    }
    if (this.#byPeer.size >= Math.ceil(total * unauthenticatedShare)) this.#evict()
    this.#open++
    this.#perAddress.set(address, fromThere + 1)
    const peer = peerOf(socket)
    this.#byPeer.set(peer, socket)
    const strangers = this.#unauthenticated.get(address) ?? new Set()
    this.#unauthenticated.set(address, strangers.add(socket))
    socket.once('close', () => this.#release(address, socket, peer))
  }

  /** For requests that have proven an identity: their connections are not closed for others. */
  readonly authenticated = ({ socket }: Pick<IncomingMessage, 'socket'>): void => {
    if (this.#authenticated.has(socket)) return
    this.#authenticated.add(socket)
    const peer = peerOf(socket)
    const raw = this.#byPeer.get(peer)
    if (raw) this.#forget(socketBucket(socket.remoteAddress ?? ''), raw, peer)
  }

  #evict(): boolean {
    let largest: ReadonlySet<Socket> | undefined
    for (const sockets of this.#unauthenticated.values())
      if (largest === undefined || sockets.size > largest.size) largest = sockets
    const [oldest] = largest ?? []
    if (oldest === undefined) return false
    this.#dropped++
    const address = socketBucket(oldest.remoteAddress ?? '')
    this.#forget(address, oldest, peerOf(oldest))
    oldest.destroy()
    return true
  }

  #forget(address: string, socket: Socket, peer: string): void {
    if (this.#byPeer.get(peer) === socket) this.#byPeer.delete(peer)
    const strangers = this.#unauthenticated.get(address)
    strangers?.delete(socket)
    if (strangers?.size === 0) this.#unauthenticated.delete(address)
  }

  #release(address: string, socket: Socket, peer: string): void {
    this.#forget(address, socket, peer)
    this.#open--
    const remaining = (this.#perAddress.get(address) ?? 1) - 1
    if (remaining > 0) this.#perAddress.set(address, remaining)
    else this.#perAddress.delete(address)
  }
}

const peerOf = ({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string => `${remoteAddress} ${remotePort}`

/** The part of an address that one party controls: all of IPv4, the first 64 bits of IPv6. */
export function socketBucket(address: string): string {
  const bare = address.startsWith('::ffff:') ? address.slice(7) : address
  if (!bare.includes(':')) return bare
  const [head = '', tail] = bare.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail === undefined) return groups.slice(0, 4).join(':')
  const behind = tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - behind.length) }, () => '0')
  return [...groups, ...zeros, ...behind].slice(0, 4).join(':')
}
