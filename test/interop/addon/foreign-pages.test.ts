import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromiumPath, openBrowser } from '../../support/browser.ts'
import { outwardAddress } from '../../support/service-proxy-lab.ts'
import {
  BrowserFronts,
  type Front,
  kubectlPath,
  secretMarker,
  secretsPath,
} from './browser-fronts.ts'

const isHere = [chromiumPath, kubectlPath, outwardAddress].every((each) => each !== undefined)

const trustedPage = '/api/v1/namespaces/kube-system/services/web:http/proxy/page.html'

/** Every way in which a page can send an object or read one; returns what could be read. */
const attempts = (base: string, name: string): string => `(async () => {
  const base = ${JSON.stringify(base)}
  const maps = base + '/api/v1/namespaces/default/configmaps'
  const object = (how) => JSON.stringify({
    apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: ${JSON.stringify(name)} + '-' + how },
  })
  const send = (how, init) => fetch(maps, { method: 'POST', body: object(how), ...init }).catch(() => {})
  const json = { headers: { 'content-type': 'application/json' } }
  await send('json', json)
  await send('json-no-referrer', { ...json, referrerPolicy: 'no-referrer' })
  await send('no-cors-text', { mode: 'no-cors' })
  await send('no-cors-untyped', { mode: 'no-cors', body: new Blob([object('no-cors-untyped')]) })
  await send('no-cors-include', { mode: 'no-cors', credentials: 'include', body: new Blob([object('no-cors-include')]) })
  await send('keepalive', { mode: 'no-cors', keepalive: true, body: new Blob([object('keepalive')]) })
  navigator.sendBeacon(maps, object('beacon'))
  navigator.sendBeacon(maps, new Blob([object('beacon-untyped')]))
  await fetch(maps + '/kept', { method: 'DELETE' }).catch(() => {})
  await fetch(maps + '/kept', { method: 'PUT', ...json, body: object('kept') }).catch(() => {})
  // A form can write any JSON around one equals sign.
  for (const enctype of ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded']) {
    const frame = document.createElement('iframe')
    frame.name = 'target-' + enctype
    document.body.append(frame)
    const form = document.createElement('form')
    Object.assign(form, { method: 'POST', action: maps, enctype, target: frame.name })
    const field = document.createElement('input')
    const [before, after] = object('form-' + enctype.slice(0, 4)).split('"v1"')
    Object.assign(field, { name: before + '"v1', value: '"' + after })
    form.append(field)
    document.body.append(form)
    const loaded = new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }))
    form.submit()
    await loaded
  }
  // Behind kubectl proxy the server learns from such a request that this is a page of its own.
  await fetch(base + ${JSON.stringify(trustedPage)}).catch(() => {})
  const opened = await new Promise((resolve) => {
    const socket = new WebSocket(base.replace('http', 'ws') + ${JSON.stringify(trustedPage)})
    socket.onopen = () => resolve(true)
    socket.onerror = socket.onclose = () => resolve(false)
  })
  const read = await fetch(base + ${JSON.stringify(secretsPath)}, { credentials: 'include' })
    .then((response) => response.text()).catch(() => '')
  return { opened, reads: read.includes(${JSON.stringify(secretMarker)}) }
})()`

const hows = [
  'json',
  'json-no-referrer',
  'no-cors-text',
  'no-cors-untyped',
  'no-cors-include',
  'keepalive',
  'beacon',
  'beacon-untyped',
  'form-text',
  'form-mult',
  'form-appl',
]

/** Pages that are no page of a front, by where they are served. */
const strangers: readonly (readonly [string, (port: number) => string])[] = [
  ['another port of localhost', (port) => `http://localhost:${port}/`],
  ['another address of this machine', (port) => `http://127.0.0.1:${port}/`],
  ['a name below localhost', (port) => `http://web--kube-system.localhost:${port}/`],
  ['a sandboxed page', (port) => `http://localhost:${port}/sandboxed`],
]

describe.skipIf(!isHere)('pages of other origins in Chromium', () => {
  let fronts: BrowserFronts
  let browser: Browser
  let stranger: Server
  let context: BrowserContext
  let page: Page

  beforeAll(async () => {
    fronts = await BrowserFronts.open()
    browser = await openBrowser()
    stranger = createServer((request, response) => {
      const isSandboxed = request.url === '/sandboxed'
      response.writeHead(200, {
        'content-type': 'text/html',
        'set-cookie': ['planted=1; Path=/', 'sid=planted; Path=/'],
        ...(isSandboxed && { 'content-security-policy': 'sandbox allow-scripts allow-forms' }),
      })
      response.end('<!doctype html><title>x</title><body>')
    }).listen(0)
    await once(stranger, 'listening')
    await fronts.configMap('kept')
  }, 300_000)
  afterAll(async () => {
    await browser?.close()
    stranger?.close()
    await fronts?.close()
  })
  beforeEach(() => {
    for (const addon of [fronts.evil, fronts.other]) {
      addon.setCookies = []
      addon.cookies.length = 0
    }
  })
  afterEach(async () => {
    await context?.close()
  })

  const port = (): number => (stranger.address() as AddressInfo).port

  async function openAt(front: Front, url: string): Promise<void> {
    context = await browser.newContext({
      ignoreHTTPSErrors: true,
      extraHTTPHeaders: { ...front.headers },
    })
    page = await context.newPage()
    await page.goto(url)
  }

  async function created(name: string): Promise<string[]> {
    const found = await Promise.all(hows.map((how) => fronts.hasConfigMap(`${name}-${how}`)))
    return hows.filter((_how, index) => found[index])
  }

  const nameOf = (...parts: readonly string[]): string =>
    parts
      .join('-')
      .replaceAll(/[^a-z]+/gi, '-')
      .toLowerCase()

  const kinds = ['API server', 'kubectl proxy', 'sallyport proxy']

  test.each(kinds.flatMap((name) => strangers.map(([where]) => [name, where] as const)))(
    '[SEC-R423] %s: %s writes nothing, reads nothing and opens no WebSocket',
    async (name, where) => {
      const front = fronts.front(name)
      const [, address] = strangers.find(([each]) => each === where) ?? []
      await openAt(front, address?.(port()) ?? '')
      const made = nameOf(name, where)
      expect(await page.evaluate(attempts(front.base, made))).toEqual({
        opened: false,
        reads: false,
      })
      expect(await created(made)).toEqual([])
      expect(await fronts.hasConfigMap('kept')).toBe(true)
    },
  )

  test.each([
    ['API server', trustedPage],
    ['kubectl proxy', trustedPage],
    ['sallyport proxy', '/static/own.html'],
  ])(
    '[SEC-R423] %s: a page of the same origin, as a control, writes, reads and opens one',
    async (name, path) => {
      const front = fronts.front(name)
      await openAt(front, front.base + path)
      const made = nameOf('control', name)
      expect(await page.evaluate(attempts(front.base, made))).toEqual({ opened: true, reads: true })
      expect(await created(made)).toEqual(['json', 'json-no-referrer'])
      await fronts.configMap('kept')
    },
  )

  describe('[SEC-R1803] cookies at the local proxy', () => {
    const hostOf = (name: string): string =>
      `${name}--evil.localhost:${new URL(fronts.front('sallyport proxy').base).port}`

    test('of an add-on reach it, and nothing that a script or another server has set', async () => {
      const front = fronts.front('sallyport proxy')
      fronts.evil.setCookies = ['sid=1; HttpOnly', 'XSRF-TOKEN=2; Domain=localhost; Path=/']
      await openAt(front, `http://${hostOf('web')}/page.html`)
      // Scripts read what is not HttpOnly, under the name that it was given.
      expect(await page.evaluate('document.cookie')).toBe('XSRF-TOKEN=2')
      await page.evaluate(`for (const domain of ['', '; Domain=localhost', '; Domain=' + location.hostname])
        document.cookie = 'tossed=1; Path=/' + domain`)
      // Cookies know no ports: another server of this machine sets some for the add-on's host.
      fronts.evil.setCookies = []
      await page.goto(`http://web--evil.localhost:${port()}/`)
      fronts.evil.cookies.length = 0
      await page.goto(`http://${hostOf('web')}/page.html`)
      expect(await page.evaluate('document.cookie')).toContain('tossed=1')
      expect(fronts.evil.cookies[0]).toBe('XSRF-TOKEN=2')
    })

    test('of an add-on reach no other one, by whichever domain it tries', async () => {
      const front = fronts.front('sallyport proxy')
      const domains = [
        'localhost',
        '.localhost',
        'evil.localhost',
        hostOf('other').replace(/:.*/, ''),
      ]
      fronts.evil.setCookies = domains.map(
        (domain, at) => `header${at}=1; Path=/; Domain=${domain}`,
      )
      await openAt(front, `http://${hostOf('web')}/page.html`)
      for (const domain of domains)
        await page.evaluate(`document.cookie = 'script=1; Path=/; Domain=${domain}'`)
      for (const url of [
        `http://${hostOf('other')}/page.html`,
        `${front.base}/api/v1/namespaces/evil/services/other:http/proxy/page.html`,
      ]) {
        await page.goto(url)
        expect(await page.evaluate('document.cookie')).toBe('')
      }
      expect(new Set(fronts.other.cookies)).toEqual(new Set(['']))
    })
  })
})
