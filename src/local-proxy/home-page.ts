import { createHash } from 'node:crypto'
import { type ProxyTarget, proxyPrefix } from '../core/index.ts'
import { type HostName, isLoopback, portSuffix } from './addon-origin.ts'
import type { AddonPort, HomeContents } from './home-contents.ts'

/** The style of the page at `/`, for light and dark. */
const homeStyle = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6576; --line: #dde2ea; --card: #fff; --page: #f5f7fa; --link: #1a5fb4; --hover: #eef2f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #98a3b5; --line: #2e3644; --card: #1c222d; --page: #13171f; --link: #8ab8ff; --hover: #262e3b; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 3rem; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; letter-spacing: -.01em; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
h3 { margin: 1rem 0 .4rem; color: var(--soft); font-size: .9rem; font-weight: 600; }
header p { margin: .25rem 0 0; color: var(--soft); overflow-wrap: anywhere; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
ul { margin: 0; padding: 0; list-style: none; }
.row { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; }
.list { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); overflow: hidden; }
.list li + li { border-top: 1px solid var(--line); }
.list a { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .75rem; padding: .6rem 1rem; color: var(--ink); }
.list a:hover { background: var(--hover); text-decoration: none; }
.list a:hover small { text-decoration: underline; }
.list a:focus-visible { outline-offset: -2px; }
.list b { overflow-wrap: anywhere; }
.list span { padding: 0 .5rem; border-radius: 1rem; background: var(--hover); color: var(--soft); font-size: .8rem; white-space: nowrap; }
.list small { margin-left: auto; color: var(--link); font-size: .9rem; overflow-wrap: anywhere; }
@media (max-width: 40rem) { .list small { flex-basis: 100%; } }
.none, footer { color: var(--soft); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); font-size: .85rem; }
`

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as it may stand in HTML, also inside quotes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (char) => entities[char] ?? char)

/** Where the page is shown, on which its links depend. */
export interface HomePlace {
  readonly server: string
  readonly host: HostName
  /** Before the paths of the API; without a slash at its end. */
  readonly apiMount: string
  /** The host of a Service's own origin. */
  readonly hostOf: (service: ProxyTarget) => string
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
function addonAddress(
  { service, isDefault }: AddonPort,
  { host, apiMount, hostOf }: HomePlace,
): string {
  if (!isLoopback(host)) return `${apiMount}${proxyPrefix(service)}/`
  const own = hostOf(isDefault ? { ...service, port: '', scheme: '' } : service)
  return `http://${own}${portSuffix(host)}/`
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
