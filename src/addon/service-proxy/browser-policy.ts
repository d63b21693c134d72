import type { IncomingMessage } from 'node:http'
import { ApiError } from '../../core/index.ts'
import { rawHeaderValues } from '../../http/index.ts'
import type { ProxyTarget } from './target.ts'

/** What a browser says about the page that asks; `undefined` from other clients. */
interface Said {
  readonly origin: string | undefined
  readonly referer: string | undefined
  readonly site: string | undefined
  readonly mode: string | undefined
  readonly dest: string | undefined
}

/** Whose pages may ask, besides those of this machine and of the server's own address. */
export interface BrowserPolicy {
  readonly origins: readonly string[]
}

/**
 * Refuses what a page of another site asks for, and what the page of another add-on asks for on the origin that all
 * share behind a proxy. Links may lead here from anywhere: a page that opens another one cannot use its answer.
 */
export function refuseForeignPages(
  request: IncomingMessage,
  target: ProxyTarget,
  host: string,
  { origins }: BrowserPolicy,
): void {
  const said = saidBy(request.rawHeaders)
  if (said.origin !== undefined) checkOrigin(said.origin, said.site, host, origins)
  if (said.site === undefined || said.site === 'none') return
  if (isLink(request.method, said)) return
  if (said.site !== 'same-origin')
    throw refused(`a page of another site may not ask here (Sec-Fetch-Site: ${said.site})`)
  // WebSockets say nothing of the page but its origin.
  if (said.mode !== 'websocket' && !isOwnPage(said.referer, target))
    throw refused(
      'a page may only use the add-on that it belongs to, and must say which it is (Referer)',
    )
}

const refused = (why: string): ApiError => new ApiError('Forbidden', why)

function saidBy(rawHeaders: readonly string[]): Said {
  const single = (name: string): string | undefined => {
    const values = rawHeaderValues(rawHeaders, name)
    if (values.length > 1) throw refused(`the header ${name} is there twice`)
    return values[0]
  }
  return {
    origin: single('origin'),
    referer: single('referer'),
    site: single('sec-fetch-site'),
    mode: single('sec-fetch-mode'),
    dest: single('sec-fetch-dest'),
  }
}

const loopback = /^https?:\/\/(?:localhost|[a-z0-9.-]+\.localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/

/** Local proxies put another name before ours, so a page of this machine is no stranger. */
function checkOrigin(
  sent: string,
  site: string | undefined,
  host: string,
  origins: readonly string[],
): void {
  const origin = sent.toLowerCase()
  const isKnown =
    loopback.test(origin) || origin === `https://${host.toLowerCase()}` || origins.includes(origin)
  // A page that sends no referrer posts its own forms with the origin null.
  if (isKnown || (origin === 'null' && site === 'same-origin')) return
  throw refused('pages of that origin may not ask here')
}

const isLink = (method: string | undefined, { mode, dest }: Said): boolean =>
  (method === 'GET' || method === 'HEAD') && mode === 'navigate' && dest === 'document'

const proxied =
  /\/api\/v1\/(?:proxy\/)?(?:namespaces\/([^/]+)\/(services|pods)|nodes)\/([^/?#]+)(?:[/?#]|$)/

/** Of the addresses at which our local proxy gives add-ons origins of their own. */
const ownOriginSuffix = '.localhost'

/** The same add-on, by whichever form of its path and at whichever of its ports. */
function isOwnPage(referer: string | undefined, target: ProxyTarget): boolean {
  const url = parsed(referer)
  if (!url) return false
  if (url.hostname.endsWith(ownOriginSuffix)) {
    const labels = url.hostname.slice(0, -ownOriginSuffix.length).split('.')
    return labels.at(-1) === target.namespace && labels.at(-2) === target.name
  }
  const [, namespace = '', resource = 'nodes', id = ''] = proxied.exec(url.pathname) ?? []
  const parts = decodeURIComponent(id).split(':')
  const name = parts.length === 3 ? parts[1] : parts[0]
  return namespace === target.namespace && resource === target.resource && name === target.name
}

function parsed(referer: string | undefined): URL | undefined {
  try {
    const url = new URL(referer ?? '')
    decodeURIComponent(url.pathname)
    return url
  } catch {
    return undefined
  }
}
