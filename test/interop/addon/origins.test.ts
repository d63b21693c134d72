import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromiumPath, openBrowser } from '../../support/browser.ts'
import {
  type Proxied,
  type Spelling,
  serviceIds,
  spellingsOf,
} from '../../support/proxied-spellings.ts'
import { outwardAddress } from '../../support/service-proxy-lab.ts'
import {
  BrowserFronts,
  contents,
  type Front,
  kubectlPath,
  pageMarker,
  secretMarker,
  secretsPath,
} from './browser-fronts.ts'

const isHere = [chromiumPath, kubectlPath, outwardAddress].every((each) => each !== undefined)

const frontNames = [
  'API server',
  'kubectl proxy',
  'sallyport proxy',
  'sallyport proxy, unfiltered',
  'sallyport proxy, bare server',
]

/** What became of a page that was opened. */
interface Outcome {
  /** Of the document, as its scripts see it. */
  readonly origin: string
  /** Whether the content of the add-on is what is shown. */
  readonly isAddon: boolean
  /** Whether a script of the content ran by itself. */
  readonly ran: boolean
  /** Whether a script in this document reads Secrets of kube-system. */
  readonly readsSecrets: boolean
}

/** In a sandboxed document no script runs, ours neither: its promises would never settle. */
const seen = `({
  origin: self.origin,
  isAddon: String(document.documentElement?.textContent).includes(${JSON.stringify(pageMarker)}),
  ran: document.documentElement?.hasAttribute('data-ran') === true,
})`

/** Runs in the page, with all that a script of this document could do. */
const readSecrets = (base: string): string =>
  `fetch(${JSON.stringify(base + secretsPath)}, { credentials: 'include' })
    .then((response) => response.text())
    .then((text) => text.includes(${JSON.stringify(secretMarker)}), () => false)`

/** Everything else that a script of the document may try; returns what worked. */
const attempts = (base: string, name: string): string => `(async () => {
  const base = ${JSON.stringify(base)}
  const secrets = base + ${JSON.stringify(secretsPath)}
  const marker = ${JSON.stringify(secretMarker)}
  const worked = []
  const check = (how, read) => {
    try { if (String(read()).includes(marker)) worked.push(how) } catch {}
  }
  await new Promise((resolve) => {
    const request = new XMLHttpRequest()
    request.onloadend = resolve
    request.open('GET', secrets)
    request.withCredentials = true
    request.send()
    request.addEventListener('loadend', () => check('XHR', () => request.responseText))
  })
  await new Promise((resolve) => {
    const frame = document.createElement('iframe')
    frame.onload = resolve
    frame.src = secrets
    document.body.append(frame)
    frame.addEventListener('load', () => check('frame', () => frame.contentDocument.body.textContent))
  })
  const opened = window.open(secrets)
  for (let count = 0; opened && count < 50; count++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    try { if (opened.document.body?.textContent) break } catch { break }
  }
  check('window', () => opened.document.body.textContent)
  await import(secrets).then(() => worked.push('import'), () => {})
  await navigator.serviceWorker?.register(base + '/worker.js', { scope: base + '/' })
    .then(() => worked.push('service worker'), () => {}).catch(() => {})
  const object = (how) => JSON.stringify({
    apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: ${JSON.stringify(name)} + '-' + how },
  })
  const maps = base + '/api/v1/namespaces/default/configmaps'
  const json = { 'content-type': 'application/json' }
  await fetch(maps, { method: 'POST', headers: json, body: object('fetch') }).catch(() => {})
  await fetch(maps, { method: 'POST', mode: 'no-cors', body: object('plain') }).catch(() => {})
  await fetch(maps, { method: 'POST', mode: 'no-cors', body: new Blob([object('blob')]) }).catch(() => {})
  try { navigator.sendBeacon(maps, object('beacon')) } catch {}
  try { document.cookie = 'tossed=1; Path=/' } catch {}
  return worked
})().catch((error) => ['failed: ' + error])`

describe.skipIf(!isHere)('content of add-ons in Chromium', () => {
  let fronts: BrowserFronts
  let browser: Browser
  let context: BrowserContext
  let page: Page

  beforeAll(async () => {
    fronts = await BrowserFronts.open()
    browser = await openBrowser()
  }, 300_000)
  afterAll(async () => {
    await browser?.close()
    await fronts?.close()
  })
  afterEach(async () => {
    await context?.close()
  })
  beforeEach(() => {
    for (const addon of [fronts.evil, fronts.other, fronts.trusted]) {
      addon.setCookies = []
      addon.cookies.length = 0
    }
  })

  /** A fresh browser profile before a front. */
  async function openFront(name: string): Promise<Front> {
    const front = fronts.front(name)
    context = await browser.newContext({
      ignoreHTTPSErrors: true,
      extraHTTPHeaders: { ...front.headers },
    })
    page = await context.newPage()
    return front
  }

  async function opened(front: Front, path: string, on: Page = page): Promise<Outcome> {
    const { api } = fronts.bare
    if (front.name.endsWith('bare server')) {
      api.answers.set(path, fronts.evil.serve)
      // The same at the path that the proxy makes of it.
      api.fallback = fronts.evil.serve
    }
    try {
      await on.goto(front.base + path)
    } catch (error) {
      if (!/Download is starting|ERR_ABORTED/.test(String(error))) throw error
      // Downloads have no page, and what is not shown runs nowhere.
      return { origin: 'null', isAddon: false, ran: false, readsSecrets: false }
    }
    return inspected(on, front)
  }

  async function inspected(on: Page, { base }: Front): Promise<Outcome> {
    const document = await on.evaluate<Omit<Outcome, 'readsSecrets'>>(seen)
    const isOpaque = document.origin === 'null'
    const readsSecrets = !isOpaque && (await on.evaluate<boolean>(readSecrets(base)))
    return { ...document, readsSecrets }
  }

  /** The one rule: an add-on's content has an origin of its own or none, runs only on its own, and reads nothing. */
  function problemOf({ origin, isAddon, ran, readsSecrets }: Outcome, front: Front): string {
    const isOwn = /^http:\/\/[a-z0-9-]+\.localhost:\d+$/.test(origin)
    if (isAddon && origin !== 'null' && !isOwn) return `has the origin ${origin}`
    if (ran && !isOwn) return `runs with the origin ${origin}`
    if (readsSecrets && (isAddon || origin !== new URL(front.base).origin)) return 'reads Secrets'
    return ''
  }

  /** Opens many paths at a time; each is one page load. */
  async function problems(front: Front, spellings: readonly Spelling[]): Promise<string[]> {
    const found: string[] = []
    const shown = new Set<string>()
    const left = [...spellings]
    const work = async (on: Page): Promise<void> => {
      for (let next = left.pop(); next; next = left.pop()) {
        const outcome = await opened(front, next.path, on)
        const problem = problemOf(outcome, front)
        if (problem !== '') found.push(`${next.name}: ${problem}`)
        if (outcome.isAddon) shown.add(outcome.origin === 'null' ? 'sandbox' : 'own origin')
      }
    }
    await Promise.all([page, await context.newPage(), await context.newPage()].map(work))
    // Otherwise nothing would have been opened that could do harm.
    expect([...shown].sort()).toEqual(
      front.name.startsWith('sallyport') ? ['own origin', 'sandbox'] : ['sandbox'],
    )
    return found
  }

  const service = (id: string): Proxied => ({ resource: 'services', namespace: 'evil', id })
  const ports = { name: 'http', number: 80 }

  test.each(frontNames)(
    '[SEC-R124] %s: in no spelling of its path does a page get the origin of the API',
    async (name) => {
      const front = await openFront(name)
      const others: Proxied[] = [
        { resource: 'pods', namespace: 'evil', id: 'web' },
        { resource: 'nodes', namespace: '', id: fronts.nodeId },
      ]
      const plain = others
        .flatMap((target) => spellingsOf(target, '/page.html'))
        .filter((spelling) => spelling.name.endsWith('plain'))
      const all = [...spellingsOf(service('web:http'), '/page.html'), ...plain]
      expect(all.length).toBeGreaterThan(100)
      expect(await problems(front, all)).toEqual([])
    },
    600_000,
  )

  test.each(frontNames)(
    '[SEC-R124] %s: content of every kind, by every id of a Service',
    async (name) => {
      const front = await openFront(name)
      const first = (target: Proxied, rest: string) => spellingsOf(target, rest).slice(0, 1)
      const ids = serviceIds('web', ports).flatMap((id) => first(service(id), '/page.html'))
      const kinds = Object.keys(contents).flatMap((rest) => [
        ...first(service('web:http'), rest),
        ...first({ resource: 'pods', namespace: 'evil', id: 'web' }, rest),
      ])
      expect(await problems(front, [...ids, ...kinds])).toEqual([])
    },
    600_000,
  )

  const pathOf = (namespace: string, id = 'web:http'): string =>
    `/api/v1/namespaces/${namespace}/services/${id}/proxy/page.html`

  test.each(['API server', 'kubectl proxy'])(
    '[SEC-R125] %s: the page of an add-on is shown, and nothing of it runs',
    async (name) => {
      const outcome = await opened(await openFront(name), pathOf('evil'))
      expect(outcome).toEqual({ origin: 'null', isAddon: true, ran: false, readsSecrets: false })
    },
  )

  test.each([
    ['sallyport proxy', 'evil', []],
    ['sallyport proxy', 'kube-system', []],
    ['sallyport proxy, unfiltered', 'evil', []],
    // The only ones on the origin of the API: what the operator trusts with it. They show that the attempts work.
    ['API server', 'kube-system', ['XHR', 'frame', 'window']],
    ['kubectl proxy', 'kube-system', ['XHR', 'frame', 'window']],
  ])(
    '[SEC-R125] %s: a page of %s runs, and its script does %j to the API',
    async (name, namespace, expected) => {
      const front = await openFront(name)
      const { isAddon, ran, origin } = await opened(front, pathOf(namespace))
      const isTrusted = expected.length > 0
      expect([isAddon, ran, origin === new URL(front.base).origin]).toEqual([true, true, isTrusted])
      const made = `${name}-${namespace}`.replaceAll(/[^a-z]+/gi, '-').toLowerCase()
      expect(await page.evaluate<string[]>(attempts(front.base, made))).toEqual(expected)
      const created = await Promise.all(
        ['fetch', 'plain', 'blob', 'beacon'].map((how) => fronts.hasConfigMap(`${made}-${how}`)),
      )
      expect(created).toEqual([isTrusted, false, false, false])
    },
  )

  test('[SEC-R125] the page of a person on the plain origin is the control: it reads, and writes', async () => {
    for (const name of ['kubectl proxy', 'sallyport proxy']) {
      const front = await openFront(name)
      await page.goto(`${front.base}/static/own.html`)
      expect((await inspected(page, front)).readsSecrets).toBe(true)
      const made = `control-${name.replace(' ', '-')}`
      await page.evaluate(attempts(front.base, made))
      expect(await fronts.hasConfigMap(`${made}-fetch`)).toBe(true)
      await context.close()
    }
  })
})
