import { rawHeaderValues } from '../http/index.ts'
import type { HostName } from './addon-origin.ts'
import { forbidden, malformed } from './refusal.ts'

/** What a browser says about a page that asks; `undefined` from other clients. */
interface FetchMetadata {
  readonly origin: string | undefined
  readonly site: string | undefined
  readonly mode: string | undefined
  readonly dest: string | undefined
}

/** What of a request is needed to tell where it comes from. */
export interface BrowserRequest {
  readonly method: string
  readonly rawHeaders: readonly string[]
  readonly host: HostName
}

/**
 * Refuses requests that a page of another origin makes: we would lend it the user's rights. Other
 * ports of `localhost` and other add-ons are other origins. A link may still lead here: a page that
 * opens another one cannot read it.
 */
export function refuseForeignPages(request: BrowserRequest): void {
  const said = metadataOf(request.rawHeaders)
  checkOrigin(said, request.host)
  if (said.site === undefined || said.site === 'same-origin' || said.site === 'none') return
  if (isPlainNavigation(request.method, said)) return
  throw forbidden(`a page of another origin may not ask here (Sec-Fetch-Site: ${shown(said.site)})`)
}

/** Whether a browser asks in order to show the answer as a page or a frame. */
export const isNavigation = (rawHeaders: readonly string[]): boolean =>
  rawHeaderValues(rawHeaders, 'sec-fetch-mode').includes('navigate')

function metadataOf(rawHeaders: readonly string[]): FetchMetadata {
  return {
    origin: single(rawHeaders, 'origin'),
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

function checkOrigin({ origin, site }: FetchMetadata, host: HostName): void {
  if (origin === undefined || origin.toLowerCase() === `http://${host.authority}`) return
  // A page that sends no referrer posts its own forms with the origin null.
  if (origin === 'null' && site === 'same-origin') return
  throw forbidden(`pages of the origin ${shown(origin)} may not ask here`)
}

const isPlainNavigation = (method: string, { mode, dest }: FetchMetadata): boolean =>
  (method === 'GET' || method === 'HEAD') && mode === 'navigate' && dest === 'document'

const shown = (value: string): string => JSON.stringify(value.slice(0, 100))
