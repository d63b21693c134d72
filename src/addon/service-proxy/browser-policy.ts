import type { IncomingMessage } from 'node:http'
import { ApiError, type ProxyTarget, parseRequestInfo } from '../../core/index.ts'
import { addonHost, rawHeaderValues } from '../../http/index.ts'

/**
 * Refuses service workers, and what a page of another add-on requests on the origin that all share behind a proxy.
 * Pages of other origins have been refused by the pipeline. Links may lead here from anywhere: a page that opens
 * another one cannot use it.
 */
export function refuseForeignPages(request: IncomingMessage, target: ProxyTarget): void {
  const { rawHeaders, headers } = request
  // It would stay in the browser, and respond to pages of this origin in place of the server.
  if (headers['service-worker'] !== undefined || headers['sec-fetch-dest'] === 'serviceworker')
    throw refused("no add-on may register a service worker on the API's origin")
  const referer = single(rawHeaders, 'referer')
  if (!isOfPage(request, referer)) return
  const page = ownPage(referer ?? '', target, single(rawHeaders, 'x-forwarded-host'))
  const origin = single(rawHeaders, 'origin')
  // Forms of a page that hides its referrer have no origin; all others name the one of the page.
  if (page === undefined || (origin !== undefined && origin !== 'null' && origin !== page.origin))
    throw refused(
      'a page may only use the add-on that it belongs to, and the Referer must name a page of this add-on',
    )
}

/** Whether a page has sent the request that could use the response, so that it must be the add-on's own. */
function isOfPage(
  { rawHeaders, headers, method }: IncomingMessage,
  referer: string | undefined,
): boolean {
  const site = single(rawHeaders, 'sec-fetch-site')
  // Programs send no Referer, and browsers that send nothing else name the page in it.
  if (site === undefined) return referer !== undefined
  if (site !== 'same-origin') return false
  // Browsers name no page in a WebSocket handshake, only its origin; no page can set this header itself.
  if (headers.upgrade !== undefined) return false
  const mode = single(rawHeaders, 'sec-fetch-mode')
  const isLink = mode === 'navigate' && single(rawHeaders, 'sec-fetch-dest') === 'document'
  return !isLink || (method !== 'GET' && method !== 'HEAD')
}

const refused = (why: string): ApiError => new ApiError('Forbidden', why)

function single(rawHeaders: readonly string[], name: string): string | undefined {
  const values = rawHeaderValues(rawHeaders, name)
  if (values.length > 1) throw refused(`the header ${name} is there twice`)
  return values[0]
}

/** The URL of a Referer that is a page of this add-on and port: by its path, or by the host at our local proxy. */
function ownPage(
  referer: string,
  target: ProxyTarget,
  forwardedHost: string | undefined,
): URL | undefined {
  const url = URL.canParse(referer) ? new URL(referer) : undefined
  // Browsers send it in its one normal form and without a user.
  if (url?.href !== referer || url.username !== '' || !/^https?:$/.test(url.protocol))
    return undefined
  const isOwn = url.hostname.endsWith('.localhost')
    ? url.host === forwardedHost && ownHosts(target).includes(url.hostname)
    : isSame(targetOf(url.pathname), target)
  return isOwn ? url : undefined
}

const isSame = (page: ProxyTarget | undefined, target: ProxyTarget): boolean =>
  page?.resource === target.resource &&
  page.namespace === target.namespace &&
  page.name === target.name &&
  page.port === target.port

/** The local proxy names that host in X-Forwarded-Host too. It may have chosen the port itself. */
const ownHosts = (target: ProxyTarget): string[] => [
  addonHost(target),
  addonHost({ ...target, port: '', scheme: '' }),
]

function targetOf(path: string): ProxyTarget | undefined {
  try {
    return parseRequestInfo('GET', path).proxy
  } catch {
    return undefined
  }
}
