import { SallyportError, wellKnown } from '../../core/index.ts'

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

/** The part of all users that one party controls: a user, or all service accounts of a namespace. */
export function partyOf(username: string): string {
  const { serviceAccountUserPrefix: prefix } = wellKnown
  if (!username.startsWith(prefix)) return username
  const end = username.indexOf(':', prefix.length)
  return end < 0 ? username : username.slice(0, end)
}
