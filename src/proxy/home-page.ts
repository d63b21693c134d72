import { createHash } from 'node:crypto'
import { addonHostOf } from './addon-host.ts'
import type { AddonPort, HomeContents } from './home-contents.ts'
import { homeStyle } from './home-style.ts'
import { type HostName, isLoopback, portSuffix } from './host-header.ts'
import { escapeHtml } from './html.ts'
import { servicePrefix } from './proxied-path.ts'

/** Where the page is shown, on which its links depend. */
export interface HomePlace {
  readonly server: string
  readonly host: HostName
  /** Before the paths of the API; without a slash at its end. */
  readonly apiMount: string
}

const styleHash = createHash('sha256').update(homeStyle).digest('base64')

/** The headers of the page: it needs its own style and nothing else in the world. */
export const homeHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  Vary: 'Accept',
}

/** The page at `/`. */
export function renderHome(contents: HomeContents, place: HomePlace): string {
  const user =
    contents.user === undefined ? '' : ` as <strong>${escapeHtml(contents.user)}</strong>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sallyport proxy</title>
<style>${homeStyle}</style>
</head>
<body>
<header>
<h1>Sallyport proxy</h1>
<p>You are at <code>${escapeHtml(place.server)}</code>${user}.</p>
</header>
<main>
${addonsSection(contents.addons, place)}
${namespacesSection(contents.namespaces, place)}
<section>
<h2>API</h2>
<ul class="row">${['/api/v1', '/apis', '/version', '/readyz?verbose', '/openapi/v3']
    .map((path) => `<li>${link(place.apiMount + path, path)}</li>`)
    .join('')}</ul>
</section>
</main>
<footer><p>Whatever passes here has your rights in the cluster. Each add-on has an address of its own, from which the API
cannot be reached.</p></footer>
</body>
</html>
`
}

function addonsSection(addons: readonly AddonPort[], place: HomePlace): string {
  const namespaces = [...new Set(addons.map(({ service }) => service.namespace))].sort()
  const groups = namespaces.map((namespace) => {
    const entries = addons
      .filter(({ service }) => service.namespace === namespace)
      .map((port) => `<li>${addonLink(port, place)}</li>`)
    return `<h3>${escapeHtml(namespace)}</h3>\n<ul class="list">${entries.join('\n')}</ul>`
  })
  const none = '<p class="none">No service with a web port that you may open.</p>'
  return `<section>\n<h2>Add-ons</h2>\n${groups.join('\n') || none}\n</section>`
}

function addonLink(port: AddonPort, place: HomePlace): string {
  const href = addonAddress(port, place)
  const where = href.startsWith('http://') ? new URL(href).host : href
  return (
    `<a href="${escapeHtml(href)}"><b>${escapeHtml(port.service.name)}</b> ` +
    `<span>${escapeHtml(port.label)}</span><small>${breakable(where)}</small></a>`
  )
}

/** An address with the places where it may go on in the next line. */
const breakable = (address: string): string => escapeHtml(address).replaceAll(/[./]/g, '<wbr>$&')

/** Names below `localhost` lead to this machine only in a browser that runs on it. */
function addonAddress({ service, isDefault }: AddonPort, { host, apiMount }: HomePlace): string {
  const { namespace, name } = service
  const own = isLoopback(host) && addonHostOf(isDefault ? { namespace, name } : service)
  return own ? `http://${own}${portSuffix(host)}/` : `${apiMount}${servicePrefix(service)}/`
}

function namespacesSection(namespaces: readonly string[], { apiMount }: HomePlace): string {
  const entries = namespaces.map(
    (name) =>
      `<li>${link(`${apiMount}/api/v1/namespaces/${encodeURIComponent(name)}/services`, name)}</li>`,
  )
  return `<section>\n<h2>Services by namespace</h2>\n<ul class="row">${entries.join('')}</ul>\n</section>`
}

const link = (href: string, text: string): string =>
  `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`
