import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { ApiError, type ProxyTarget } from '../../core/index.ts'
import { refuseForeignPages } from './browser-policy.ts'

const target: ProxyTarget = {
  resource: 'services',
  namespace: 'default',
  name: 'web',
  port: '80',
  scheme: '',
}
const front = 'http://localhost:8001'
const own = '/api/v1/namespaces/default/services/web:80/proxy'
const other = '/api/v1/namespaces/evil/services/other:80/proxy'

/** Referers of the add-on's own pages. */
const ownPages: Readonly<Record<string, string>> = {
  'its page': `${front}${own}/page?x`,
  'its page, without a slash': `${front}${own}`,
  'its page in the legacy form': `${front}/api/v1/proxy/namespaces/default/services/web:80/`,
  'its page with encoded colons': `${front}/api/v1/namespaces/default/services/web%3A80/proxy/`,
  'its page by a scheme': `${front}/api/v1/namespaces/default/services/http:web:80/proxy/`,
  'its page on another front': `https://api.example:6443${own}/`,
  'a path of another inside its own': `${front}${own}${other}/`,
  'its own origin at the local proxy': 'http://80--web--default.localhost:8001/x',
  'its own origin, whose port the proxy has chosen': 'http://web--default.localhost:8001/x',
}

/** Referers of everything else, most of which name the add-on somewhere. */
const foreignPages: Readonly<Record<string, string>> = {
  'nothing at all': '',
  'no URL': own,
  'another add-on': `${front}${other}/`,
  'another port of its Service': `${front}${own.replace(':80', ':8080')}/`,
  'its Service without a port': `${front}${own.replace(':80', '')}/`,
  'a namesake in another namespace': `${front}${own.replace('default', 'evil')}/`,
  'a Pod of its name': `${front}${own.replace('services', 'pods')}/`,
  "its path inside another's": `${front}${other}${own}/`,
  "its path inside another's query": `${front}${other}/?x=${own}/`,
  "its path inside another's fragment": `${front}${other}/#${own}/`,
  "its path inside another's, legacy": `${front}/api/v1/proxy/namespaces/evil/services/other/${own}/`,
  "its path inside a page's": `${front}/static${own}/`,
  'its path below an API prefix': `${front}/k8s${own}/`,
  'its path in a query': `${front}/?x=${own}/`,
  'its path with a user': `http://user:secret@localhost:8001${own}/`,
  'its front as a user': `http://localhost:8001@evil.example${other}/`,
  'its path with an encoded slash': `${front}${own.replace('/proxy', '%2Fproxy')}/`,
  'its path in capitals': `${front}${own.toUpperCase()}/`,
  'its path with Proxy': `${front}${own.replace('proxy', 'Proxy')}/`,
  'its path under watch': `${front}${own.replace('/v1/', '/v1/watch/')}/`,
  'its path of another group': `${front}${own.replace('/api/v1/', '/apis/apps/v1/')}/`,
  'its path by climbing': `${front}${other}/../../../../default/services/web:80/proxy/`,
  'its path by an encoded climb': `${front}${other}/%2e%2e/%2e%2e/%2e%2e/%2e%2e/default/services/web:80/proxy/`,
  'its path with an empty segment': `${front}${own.replace('/proxy', '//proxy')}/`,
  'its path with backslashes': `${front}${own.replaceAll('/', '\\')}/`,
  'its page with a scheme in capitals': `HTTP://localhost:8001${own}/`,
  'the API': `${front}/api/v1/namespaces/default/services/web:80`,
  'the home page': `${front}/`,
  'a file': `file://${own}/`,
  'a blob': `blob:${front}${own}/`,
  'the own origin of another add-on': 'http://other--evil.localhost:8001/',
  'the own origin of a look-alike': 'http://80--evilweb--default.localhost:8001/',
  'the own origin of another port': 'http://8080--web--default.localhost:8001/',
  'the own origin in its earlier form': 'http://80.web.default.localhost:8001/',
  'its own origin at another port of this machine': 'http://web--default.localhost:3000/',
  'its path at the origin of another': `http://other--evil.localhost:8001${own}/`,
}

/** What browsers send of how a request came about; the last two are no browser's. */
const labels: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ...['none', 'same-origin', 'same-site', 'cross-site'].flatMap((site) =>
    [
      ['navigate', 'document'],
      ['navigate', 'iframe'],
      ['cors', 'empty'],
      ['no-cors', 'image'],
      ['no-cors', 'script'],
      ['same-origin', 'worker'],
    ].map(([mode = '', dest = '']) => {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest }
      return [`${site} ${mode} ${dest}`, headers] as const
    }),
  ),
  ['no fetch metadata', {}],
]

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'WebSocket']

function isLet(method: string, headers: Readonly<Record<string, string>>): boolean {
  const isSocket = method === 'WebSocket'
  const all = { ...headers, ...(isSocket && { upgrade: 'websocket' }) }
  const request = {
    method: isSocket ? 'GET' : method,
    headers: all,
    rawHeaders: Object.entries(all).flat(),
  }
  try {
    refuseForeignPages(request as unknown as IncomingMessage, target)
    return true
  } catch (error) {
    if (!(error instanceof ApiError && error.reason === 'Forbidden')) throw error
    return false
  }
}

/** The rule in the words of docs/security.md; requests of other origins have been refused before, by the pipeline. */
function mayPass(method: string, label: string, page: 'own' | 'foreign' | 'none'): boolean {
  const isRead = ['GET', 'HEAD', 'WebSocket'].includes(method)
  if (label === 'no fetch metadata') return page !== 'foreign'
  if (!label.startsWith('same-origin')) return true
  if (isRead && label.endsWith('navigate document')) return true
  return method === 'WebSocket' || page === 'own'
}

describe('[SEC-R1901, SEC-R1902] a page may use the add-on that it belongs to', () => {
  const pages = [
    ['own', ownPages],
    ['foreign', foreignPages],
  ] as const

  test.each(labels)('%s: method by method, Referer by Referer', (label, headers) => {
    const wrong: string[] = []
    for (const method of methods) {
      if (isLet(method, headers) !== mayPass(method, label, 'none'))
        wrong.push(`${method}: no page`)
      for (const [kind, referers] of pages)
        for (const [name, referer] of Object.entries(referers)) {
          const sent = { ...headers, referer, 'x-forwarded-host': new URL(hostOf(referer)).host }
          for (const [origin, isOther] of originsBeside(referer)) {
            const isLetIn = isLet(method, { ...sent, ...(origin !== '' && { origin }) })
            const expected = mayPass(method, label, isOther ? 'foreign' : kind)
            if (isLetIn !== expected) wrong.push(`${method}: ${name}, origin ${origin}`)
          }
        }
    }
    expect(wrong).toEqual([])
  })

  /** Origins next to a Referer, and whether they contradict it. */
  const originsBeside = (referer: string): [string, boolean][] => [
    ['', false],
    ['null', false],
    [URL.canParse(referer) ? new URL(referer).origin : front, false],
    ['http://localhost:3000', true],
    ['http://other--evil.localhost:8001', true],
  ]

  /** What our local proxy says of its own origins, which are at port 8001. */
  const hostOf = (referer: string): string =>
    referer.includes('.localhost:8001') ? referer : 'http://web--default.localhost:8001'

  test('its own origin counts only at the local proxy that serves it', () => {
    const referer = 'http://web--default.localhost:8001/'
    const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', referer }
    expect(isLet('GET', headers)).toBe(false)
    expect(isLet('GET', { ...headers, 'x-forwarded-host': 'web--default.localhost' })).toBe(false)
    expect(isLet('GET', { ...headers, 'x-forwarded-host': 'web--default.localhost:8001' })).toBe(
      true,
    )
  })

  test.each(['sec-fetch-site', 'referer', 'sec-fetch-mode'])(
    'the header %s counts once',
    (name) => {
      const all = {
        'sec-fetch-site': 'same-origin',
        'sec-fetch-mode': 'cors',
        referer: `${front}${own}/`,
      }
      const rawHeaders = [
        ...Object.entries(all),
        ...Object.entries(all).filter(([each]) => each === name),
      ]
      const request = { method: 'GET', headers: all, rawHeaders: rawHeaders.flat() }
      expect(() => refuseForeignPages(request as unknown as IncomingMessage, target)).toThrow(
        'twice',
      )
    },
  )

  test.each(['service-worker', 'sec-fetch-dest'])('no service worker, by %s', (name) => {
    const value = name === 'sec-fetch-dest' ? 'serviceworker' : 'script'
    expect(isLet('GET', { referer: `${front}${own}/`, [name]: value })).toBe(false)
  })
})
