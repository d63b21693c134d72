import type { Socket } from 'node:net'
import { SallyportError } from '../../core/index.ts'

/** What a single request may bring along before anybody looks at it. */
export interface RequestLimits {
  readonly maxUrlLength: number
  readonly maxHeaderCount: number
  readonly maxHeaderBytes: number
}

/** Wide enough for every stock client, too narrow to be a weapon. */
export const defaultRequestLimits: RequestLimits = {
  maxUrlLength: 16 * 1024,
  maxHeaderCount: 1_000,
  maxHeaderBytes: 64 * 1024,
}

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

/** Counts the connections of a server and drops those that are too many. */
export class ConnectionGate {
  readonly #limits: ConnectionLimits
  readonly #perAddress = new Map<string, number>()
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

  /** For a server's `connection` event. Nothing is written: before TLS there is no way to explain. */
  readonly admit = (socket: Socket): void => {
    const address = socketBucket(socket.remoteAddress ?? '')
    const fromThere = this.#perAddress.get(address) ?? 0
    if (this.#open >= this.#limits.total || fromThere >= this.#limits.perAddress) {
      this.#dropped++
      socket.destroy()
      return
    }
    this.#open++
    this.#perAddress.set(address, fromThere + 1)
    socket.once('close', () => this.#release(address))
  }

  #release(address: string): void {
    this.#open--
    const remaining = (this.#perAddress.get(address) ?? 1) - 1
    if (remaining > 0) this.#perAddress.set(address, remaining)
    else this.#perAddress.delete(address)
  }
}

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
