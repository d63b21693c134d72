import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ProxyTarget, SallyportError } from '../../src/core/index.ts'
import { addonHost, sandboxPolicy } from '../../src/http/index.ts'
import { filterDefaults } from '../../src/local-proxy/options/index.ts'
import { type Planner, planRequest } from '../../src/local-proxy/plan-request.ts'
import { ProxyLab } from '../../src/local-proxy/proxy-lab.suite.ts'
import { RequestFilter } from '../../src/local-proxy/request-filter.ts'
import { type Proxied, serviceIds, spellingsOf } from '../support/proxied-spellings.ts'

let lab: ProxyLab

const { stackTraceLimit } = Error

beforeAll(async () => {
  lab = await ProxyLab.open()
  // Tens of thousands of refusals, of which only the kind counts.
  Error.stackTraceLimit = 0
})
beforeEach(() => {
  lab.api.seen.length = 0
})
afterAll(async () => {
  Error.stackTraceLimit = stackTraceLimit
  await lab.close()
})

const targets: readonly Proxied[] = [
  ...serviceIds('web', { name: 'http', number: 80 }).map(
    (id) => ({ resource: 'services', namespace: 'evil', id }) as const,
  ),
  { resource: 'services', namespace: 'evil', id: 'https:web:443' },
  { resource: 'pods', namespace: 'evil', id: 'web-0' },
  { resource: 'pods', namespace: 'evil', id: 'web-0:8080' },
  { resource: 'nodes', namespace: '', id: 'node-1' },
]
const spellings = targets.flatMap((target) => spellingsOf(target, '/page.html'))

/** How browsers label what a page of the plain origin, or a person, causes there. */
const browserRequests: readonly (readonly [string, readonly string[]])[] = [
  [
    'a typed address',
    ['Sec-Fetch-Site: none', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'],
  ],
  [
    'a link elsewhere',
    ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'],
  ],
  ...['iframe', 'frame', 'object', 'embed'].map(
    (dest) =>
      [
        `an ${dest}`,
        ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: navigate', `Sec-Fetch-Dest: ${dest}`],
      ] as const,
  ),
  ...['image', 'script', 'style', 'worker', 'sharedworker', 'serviceworker', 'xslt', 'empty'].map(
    (dest) =>
      [
        `a ${dest}`,
        ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: no-cors', `Sec-Fetch-Dest: ${dest}`],
      ] as const,
  ),
  ['a service worker of an old browser', ['Service-Worker: script']],
  ['an old browser', ['Accept: text/html']],
]

const isExecuted = /Sec-Fetch-Dest: (?:script|style|\w*worker|xslt)|Service-Worker/

describe('[SEC-R120, SEC-R121] content of the cluster on the plain origin', () => {
  const services = {
    complete: async (service: ProxyTarget) => service,
    find: async () => undefined,
    hostOf: addonHost,
  }
  const planners: Readonly<Record<string, Planner>> = {
    'by default': {
      routes: { apiPrefix: '/' },
      filter: new RequestFilter(filterDefaults),
      services,
    },
    'with --disable-filter': { routes: { apiPrefix: '/' }, services },
    'with every host': {
      routes: { apiPrefix: '/' },
      filter: new RequestFilter({ ...filterDefaults, acceptHosts: '.*' }),
      services,
    },
    'with an API prefix': { routes: { apiPrefix: '/k8s/' }, services },
    'with an API prefix below /api': { routes: { apiPrefix: '/api/' }, services },
  }

  /** What would become of a request, decided from its head alone. */
  function planned(
    planner: Planner,
    path: string,
    lines: readonly string[],
    method: string,
  ): string {
    const rawHeaders = lines.flatMap((line) => line.split(/: (.*)/s).slice(0, 2))
    const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(/: (.*)/s)))
    try {
      const head = { method, url: path, httpVersion: '1.1', headers, rawHeaders }
      const plan = planRequest(head, planner)
      if (plan instanceof Promise) return 'own origin without a redirect'
      if (plan.kind === 'forward') return plan.place.kind === 'own' ? 'runs' : 'data'
      if (plan.kind !== 'redirect') return plan.kind
      const { hostname } = new URL(plan.location, 'http://localhost:8001')
      return hostname === 'localhost' ? 'clean path' : hostname
    } catch (error) {
      if (error instanceof SallyportError) return 'refused'
      throw error
    }
  }

  test.each([
    ['by default', 'localhost:8001', true],
    ['by default', '127.0.0.1:8001', true],
    ['by default', '[::1]:8001', true],
    ['with --disable-filter', 'localhost:8001', true],
    ['with --disable-filter', 'proxy.lan', false],
    ['with every host', 'proxy.lan:8001', false],
    ['with every host', 'localhost.', false],
    ['with an API prefix', 'localhost', true],
    ['with an API prefix below /api', 'localhost', true],
  ])('%s, at %s, in no spelling runs there', (name, host, isLoopback) => {
    const planner = planners[name]
    if (!planner) throw new Error(name)
    const outcomes = new Set<string>()
    const wrong: string[] = []
    for (const [kind, headers] of browserRequests) {
      const lines = [`Host: ${host}`, ...headers]
      const isRun = isExecuted.test(headers.join('\n'))
      const fine = isRun
        ? /^(?:refused|clean path)$/
        : /^(?:refused|clean path|data|\S+--evil\.localhost)$/
      for (const { path, name: spelling } of spellings)
        for (const method of ['GET', 'POST']) {
          const outcome = planned(planner, path, lines, method)
          if (!fine.test(outcome)) wrong.push(`${method} of ${kind} for ${spelling}: ${outcome}`)
          outcomes.add(outcome)
        }
    }
    expect(wrong).toEqual([])
    const own = serviceIds('web', { name: 'http', number: 80 }).map((id) => hostOf(id))
    const expected = ['clean path', 'data', 'refused']
    expect([...outcomes].sort()).toEqual(
      [...expected, ...(isLoopback ? [...own, hostOf('https:web:443')] : [])].sort(),
    )
  })

  const hostOf = (id: string): string => {
    const [scheme = '', name = '', port = ''] =
      /^(?:(https?):)?([^:]+):?(.*)$/.exec(id)?.slice(1) ?? []
    const target = { resource: 'services', namespace: 'evil', name, port } as const
    return addonHost({ ...target, scheme: scheme as '' | 'http' | 'https' })
  }

  test('is sent with the headers that make it data, from a server that sends none', async () => {
    const proxy = await lab.proxy()
    const open = await lab.unfiltered()
    const html = { 'content-type': 'text/html', 'service-worker-allowed': '/' }
    for (const path of [
      '/api/v1/namespaces/evil/pods/web-0/proxy/page.html',
      '/api/v1/nodes/node-1/proxy/page.html',
      '/api/v1/namespaces/evil/services/web/proxy/page.html',
      '/apis/cluster.karmada.io/v1alpha1/clusters/member/proxy/page.html',
      '/k8s/clusters/c1/api/v1/namespaces/evil/services/web/proxy/page.html',
      '/logs/page.html',
    ]) {
      lab.api.answers.set(path, (_request, response) => response.writeHead(200, html).end('<p>'))
      for (const each of [proxy, open]) {
        const { status, headers } = await each.ask(path)
        expect([path, status]).toEqual([path, 200])
        expect(headers).toMatchObject({
          'content-security-policy': sandboxPolicy,
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
        })
        const isProxied = path.startsWith('/api') && path.includes('/proxy/')
        expect(headers['service-worker-allowed']).toBe(isProxied ? undefined : '/')
      }
    }
  })
})
