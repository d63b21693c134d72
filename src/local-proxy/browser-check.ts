import { rawHeaderValues } from '../http/index.ts'
import type { HostName } from './addon-origin.ts'
import { forbidden, malformed } from './refusal.ts'

/** What a browser sends about the page behind a request; `undefined` from other clients. */
interface PageHeaders {
  readonly origin: string | undefined
  readonly referer: string | undefined
  readonly site: string | undefined
  readonly mode: string | undefined
  readonly dest: string | undefined
}

/** The parts of a request that say from where it comes. */
export interface BrowserRequest {
  readonly method: string
  readonly rawHeaders: readonly string[]
  readonly host: HostName
}

/**
 * Refuses requests of pages of another origin, which would act with the user's rights. Other ports of `localhost` and
 * other add-ons are other origins. A link may still lead here: a page that opens another one cannot read it.
 */
export function refuseForeignPages(request: BrowserRequest): void {
  const page = pageHeaders(request.rawHeaders)
  const own = `http://${request.host.authority}`
  checkOrigin(page, own)
  if (page.site === undefined) {
    checkReferer(request.method, page, own)
    return
  }
  if (page.site === 'same-origin' || page.site === 'none') return
  if (isRead(request.method) && page.mode === 'navigate' && page.dest === 'document') return
  throw forbidden(`pages of other origins have no access (Sec-Fetch-Site: ${shown(page.site)})`)
}

/** What a browser would run with the rights of the origin, or put into a page that has them. */
const executed: ReadonlySet<string> = new Set([
  'audioworklet',
  'paintworklet',
  'script',
  'serviceworker',
  'sharedworker',
  'style',
  'worker',
  'xslt',
])

/** On the origin of the API everything from upstream is data, also for a page that may read it. */
export function refuseExecution(rawHeaders: readonly string[]): void {
  const dest = rawHeaderValues(rawHeaders, 'sec-fetch-dest').find((each) => executed.has(each))
  if (dest !== undefined || rawHeaderValues(rawHeaders, 'service-worker').length > 0)
    throw forbidden(`content of the cluster is not executed here (${dest ?? 'service worker'})`)
}

/** Whether a browser sends the request in order to show the response as a page or a frame. */
export const isNavigation = (rawHeaders: readonly string[]): boolean =>
  rawHeaderValues(rawHeaders, 'sec-fetch-mode').includes('navigate')

function pageHeaders(rawHeaders: readonly string[]): PageHeaders {
  return {
    origin: single(rawHeaders, 'origin'),
    referer: single(rawHeaders, 'referer'),
    site: single(rawHeaders, 'sec-fetch-site'),
    mode: single(rawHeaders, 'sec-fetch-mode'),
    dest: single(rawHeaders, 'sec-fetch-dest'),
  }
}

function single(rawHeaders: readonly string[], name: string): string | undefined {
  const values = rawHeaderValues(rawHeaders, name)
  if (values.length > 1) throw malformed(`the header ${name} is there twice`)
  return values[0]
}

function checkOrigin({ origin, site }: PageHeaders, own: string): void {
  if (origin === undefined || origin.toLowerCase() === own) return
  // A page that sends no referrer posts its own forms with the origin null.
  if (origin === 'null' && site === 'same-origin') return
  throw forbidden(`pages of the origin ${shown(origin)} have no access`)
}

/** Browsers without fetch metadata name the page of a form in its Referer, if not in its Origin. */
function checkReferer(method: string, { origin, referer }: PageHeaders, own: string): void {
  if (referer === undefined || origin !== undefined || isRead(method)) return
  if (!URL.canParse(referer) || new URL(referer).origin !== own)
    throw forbidden(`pages of ${shown(referer)} have no access (Referer)`)
}

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD'

const shown = (value: string): string => JSON.stringify(value.slice(0, 100))
