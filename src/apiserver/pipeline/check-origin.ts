import { ApiError, goQuote, isProxied } from '../../core/index.ts'
import { hostOf } from '../../http/index.ts'
import type { Exchange } from './exchange.ts'
import type { PipelineParts } from './types.ts'

/**
 * Rejects what a page of another origin may not do with the rights of its visitor: write, open an upgraded connection,
 * or use an add-on. The API gives no page of another origin access to its responses, so plain reads stay possible, and
 * links may lead to an add-on. Clients that are no browsers send none of these headers.
 */
export function checkOrigin(exchange: Exchange, parts: PipelineParts): void {
  const { origin, referer } = exchange.request.headers
  const site = exchange.request.headers['sec-fetch-site']
  if (site === undefined && origin === undefined && referer === undefined) return
  if (site === 'same-origin' || site === 'none' || isRead(exchange)) return
  const named = origin ?? (site === undefined ? originOf(referer) : 'null')
  if (parts.isAllowedOrigin(named, exchange.info)) return
  // Fetch metadata is the browser's own word: the origin counts only without it.
  if (site === undefined && isOwnOrUnproven(exchange, named)) return
  throw foreignPage(named)
}

/** An upgrade of which only the origin is known is decided once its user is. */
const isOwnOrUnproven = (exchange: Exchange, origin: string): boolean =>
  origin.toLowerCase() === ownOrigin(exchange) || (needsProof(exchange) && origin !== 'null')

/**
 * Chromium sends nothing but the origin with a WebSocket handshake, and behind `kubectl proxy` that is not the origin
 * of this server. It is accepted if the browser of the same user has called requests of that origin `same-origin`
 * before, as it does for everything that a page loads before it can open a WebSocket. No page can claim that itself.
 */
export function checkProvenOrigin(exchange: Exchange, parts: PipelineParts): void {
  const { provenOrigins, isAllowedOrigin } = parts
  const { origin = '', referer = '' } = exchange.request.headers
  const { startedAt, authentication, info } = exchange
  if (exchange.request.headers['sec-fetch-site'] === 'same-origin')
    provenOrigins.prove(authentication.user.username, origin || originOf(referer), startedAt)
  if (!needsProof(exchange) || isAllowedOrigin(origin, info)) return
  if (origin.toLowerCase() === ownOrigin(exchange)) return
  if (!provenOrigins.has(authentication.user.username, origin, startedAt)) throw foreignPage(origin)
}

/** True for an upgrade of which only the origin of its page is known. */
const needsProof = ({ upgrade, request: { headers } }: Exchange): boolean =>
  upgrade !== undefined && headers.origin !== undefined && headers['sec-fetch-site'] === undefined

const maxQuoted = 100

const foreignPage = (origin: string): ApiError =>
  new ApiError(
    'Forbidden',
    `a page of the origin ${goQuote(origin.slice(0, maxQuoted))} has sent this request, and pages of other origins ` +
      'may only read; the option --allowed-origin of the server permits an origin to write',
  )

/** True for requests without an effect that their page could see or use. */
function isRead({ request, info, upgrade }: Exchange): boolean {
  const { method, headers } = request
  if (upgrade || (method !== 'GET' && method !== 'HEAD')) return false
  if (!isProxied(info)) return true
  // Other programs decide what a GET does. A link from anywhere may lead to them, and old browsers say no more of one.
  const isLink =
    headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return isLink || (headers['sec-fetch-site'] === undefined && headers.origin === undefined)
}

const originOf = (url = ''): string => (URL.canParse(url) ? new URL(url).origin : 'null')

/** The port is always TLS; browsers leave the default port out. */
const ownOrigin = ({ request }: Exchange): string =>
  `https://${hostOf(request).toLowerCase().replace(/:443$/, '')}`
