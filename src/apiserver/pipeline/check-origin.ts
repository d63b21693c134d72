import { ApiError, goQuote, isProxied, type RequestInfo } from '../../core/index.ts'
import { hostOf } from '../../http/index.ts'
import {
  maxOriginAgeMs,
  maxOriginLength,
  maxOriginsPerUser,
  maxOriginUsers,
  maxQuotedOriginLength,
} from '../limits.ts'
import type { Exchange } from './exchange.ts'

interface Deps {
  readonly origins: OriginPolicy
}

/**
 * Rejects what a page of another origin may not do with the rights of its visitor: write, open an upgraded connection,
 * or use an add-on. The API gives no page of another origin access to its responses, so plain reads stay possible, and
 * links may lead to an add-on. Clients other than browsers send none of these headers.
 */
export function checkOrigin(exchange: Exchange, { origins }: Deps): void {
  const { origin, referer } = exchange.request.headers
  const site = exchange.request.headers['sec-fetch-site']
  if (site === undefined && origin === undefined && referer === undefined) return
  if (site === 'same-origin' || site === 'none' || isRead(exchange)) return
  const named = origin ?? (site === undefined ? originOf(referer) : 'null')
  if (origins.isAllowed(named, exchange.info)) return
  // Fetch metadata is set by the browser itself: the origin counts only without it.
  if (site === undefined && isOwnOrUnproven(exchange, named)) return
  throw foreignPage(named)
}

/** An upgrade of which only the origin is known is decided once its user is. */
const isOwnOrUnproven = (exchange: Exchange, origin: string): boolean =>
  origin.toLowerCase() === ownOrigin(exchange) || (needsProof(exchange) && origin !== 'null')

/**
 * Chromium sends nothing but the origin with a WebSocket handshake, and behind `kubectl proxy` that is not the origin
 * of this server. It is accepted if the browser of the same user has labelled requests of that origin `same-origin`
 * before, as it does for everything that a page loads before it can open a WebSocket. No page can claim that itself.
 */
export function checkProvenOrigin(exchange: Exchange, { origins }: Deps): void {
  const { origin = '', referer = '' } = exchange.request.headers
  const { startedAt, authentication, info } = exchange
  if (exchange.request.headers['sec-fetch-site'] === 'same-origin')
    origins.prove(authentication.user.username, origin || originOf(referer), startedAt)
  if (!needsProof(exchange) || origins.isAllowed(origin, info)) return
  if (origin.toLowerCase() === ownOrigin(exchange)) return
  if (!origins.isProven(authentication.user.username, origin, startedAt)) throw foreignPage(origin)
}

/** True for an upgrade of which only the origin of its page is known. */
const needsProof = ({ upgrade, request: { headers } }: Exchange): boolean =>
  upgrade !== undefined && headers.origin !== undefined && headers['sec-fetch-site'] === undefined

const foreignPage = (origin: string): ApiError =>
  new ApiError(
    'Forbidden',
    `a page of the origin ${goQuote(origin.slice(0, maxQuotedOriginLength))} has sent this request, and pages of other origins ` +
      'may only read; the option --allowed-origin of the server permits an origin to write',
  )

/** True for requests without an effect that their page could see or use. */
function isRead({ request, info, upgrade }: Exchange): boolean {
  const { method, headers } = request
  if (upgrade || (method !== 'GET' && method !== 'HEAD')) return false
  if (!isProxied(info)) return true
  // Other programs decide what a GET does. A link from anywhere may lead to them, and old browsers send no more headers.
  const isLink =
    headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return isLink || (headers['sec-fetch-site'] === undefined && headers.origin === undefined)
}

const originOf = (url = ''): string => (URL.canParse(url) ? new URL(url).origin : 'null')

/** The port is always TLS; browsers omit the default port. */
const ownOrigin = ({ request }: Exchange): string =>
  `https://${hostOf(request).toLowerCase().replace(/:443$/, '')}`

/** Which origins may write: those of the options, and those at which browsers reach this server, by user. */
export class OriginPolicy {
  readonly #everywhere: ReadonlySet<string>
  readonly #atAddons: ReadonlySet<string>
  /** Monotonic times by origin, by user; the user who was seen last comes last. No user can prove one for another. */
  readonly #proven = new Map<string, Map<string, number>>()

  constructor({
    allowedOrigin,
    addonAllowedOrigin,
  }: {
    readonly allowedOrigin: readonly string[]
    readonly addonAllowedOrigin: readonly string[]
  }) {
    this.#everywhere = new Set(allowedOrigin)
    this.#atAddons = new Set([...allowedOrigin, ...addonAllowedOrigin])
  }

  /** Whether the options permit pages of an origin to write, or to use add-ons if the request is for one. */
  isAllowed(origin: string, info: RequestInfo): boolean {
    return (isProxied(info) ? this.#atAddons : this.#everywhere).has(origin)
  }

  prove(username: string, origin: string, now: number): void {
    if (origin === 'null' || origin.length > maxOriginLength) return
    const origins = this.#proven.get(username) ?? new Map<string, number>()
    this.#proven.delete(username)
    this.#proven.set(username, origins)
    origins.delete(origin)
    origins.set(origin, now)
    if (origins.size > maxOriginsPerUser) dropFirst(origins)
    if (this.#proven.size > maxOriginUsers) dropFirst(this.#proven)
  }

  isProven(username: string, origin: string, now: number): boolean {
    const provenAt = this.#proven.get(username)?.get(origin)
    return provenAt !== undefined && now - provenAt < maxOriginAgeMs
  }
}

function dropFirst(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key)
    return
  }
}
