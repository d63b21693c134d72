import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawHeaderValues } from '../../src/http/index.ts'
import type { FakeCluster } from '../../src/local-proxy/fake-api-server.suite.ts'
import { type LabProxy, ProxyLab, websocketHeaders } from '../../src/local-proxy/proxy-lab.suite.ts'

let lab: ProxyLab
let proxy: LabProxy

const service = (namespace: string, name: string, ports: readonly object[]): object => ({
  metadata: { namespace, name },
  spec: { ports },
})

const cluster: FakeCluster = {
  namespaces: ['apps', 'kube-system', 'default'],
  services: [
    service('kube-system', 'dash', [{ name: 'web', port: 80 }]),
    service('kube-system', 'plain', [{ port: 80 }]),
    service('kube-system', 'tls', [{ port: 443 }]),
    service('apps', 'shop', [
      { name: 'http', port: 80 },
      { name: 'https', port: 443 },
      { name: 'db', port: 5432 },
    ]),
    service('apps', 'db', [{ name: 'pg', port: 5432 }]),
    service('default', 'kubernetes', [{ name: 'https', port: 443 }]),
  ],
  rules: {},
  mayProxyAll: true,
  mayListAll: true,
}

beforeAll(async () => {
  lab = await ProxyLab.open()
  proxy = await lab.proxy()
})
beforeEach(() => {
  lab.api.seen.length = 0
  lab.api.cluster = cluster
})
afterAll(() => lab.close())

const prefixOf = (namespace: string, id: string): string =>
  `/api/v1/namespaces/${namespace}/services/${id}/proxy`

describe("[CRED-P8] an add-on's own address", () => {
  test.each([
    ['dash--kube-system.localhost', prefixOf('kube-system', 'dash:web')],
    ['plain--kube-system.localhost', prefixOf('kube-system', 'plain')],
    ['tls--kube-system.localhost', prefixOf('kube-system', 'https:tls:')],
    ['shop--apps.localhost', prefixOf('apps', 'shop:http')],
    ['https--shop--apps.localhost', prefixOf('apps', 'https:shop:https')],
    ['8080--shop--apps.localhost', prefixOf('apps', 'shop:8080')],
    ['unknown--apps.localhost', prefixOf('apps', 'unknown')],
    ['DASH--kube-system.LOCALHOST', prefixOf('kube-system', 'dash:web')],
  ])('%s leads to %s', async (host, prefix) => {
    const answer = await proxy.ask('/a%2Fb//c?d=e', [`Host: ${host}:8001`])
    expect(answer.status).toBe(200)
    expect(lab.api.last.url).toBe(`${prefix}/a%2Fb//c?d=e`)
  })

  test.each([
    '/api',
    '/api/v1/secrets',
    '/apis/apps/v1/deployments',
    '/version',
    '/api/v1/namespaces/kube-system/secrets',
    // What no API server would classify may still be a path of an add-on.
    '/api/v1/namespaces/apps%2Fservices/shop/proxy/',
    '/api/v1/watch/namespaces/apps/services/shop/proxy/',
    '/api/v1//pods',
  ])('takes %s for a path of the add-on, and never to the API', async (path) => {
    await proxy.ask(path, ['Host: dash--kube-system.localhost'])
    expect(lab.api.last.url).toBe(prefixOf('kube-system', 'dash:web') + path)
  })

  test.each([
    `${prefixOf('apps', 'shop')}/`,
    `${prefixOf('kube-system', 'dash:other')}/`,
    '/api/v1/proxy/namespaces/apps/services/shop/',
    '/api/v1/namespaces/apps/pods/p/proxy/',
    '/api/v1/nodes/n/proxy/metrics',
    '/api/v1/namespaces/apps/services/shop%3Ahttp/proxy/',
  ])('refuses %s', async (path) => {
    const answer = await proxy.ask(path, ['Host: dash--kube-system.localhost'])
    expect(answer.status).toBe(403)
    expect(lab.api.seen.filter(({ url }) => url.includes('proxy'))).toEqual([])
  })

  test.each(['/../x', '/../../../../secrets', '/%2e%2e/x', '/a/%2E./x', '/a/..', '/./x'])(
    'refuses to climb by %s',
    async (path) => {
      expect((await proxy.ask(path, ['Host: plain--kube-system.localhost'])).status).toBe(400)
      expect(lab.api.seen).toEqual([])
    },
  )

  test("knows the add-on's path again that the API server has put into its links", async () => {
    const prefix = prefixOf('kube-system', 'dash:web')
    await proxy.ask(`${prefix}/style.css?v=1`, ['Host: dash--kube-system.localhost'])
    expect(lab.api.last.url).toBe(`${prefix}/style.css?v=1`)
    await proxy.ask(prefix, ['Host: dash--kube-system.localhost'])
    expect(lab.api.last.url).toBe(`${prefix}/`)
  })

  test('tells the add-on its address, whatever the client says', async () => {
    await proxy.ask('/', ['Host: dash--kube-system.localhost:8001', 'X-Forwarded-Host: evil'])
    const { rawHeaders } = lab.api.last
    expect(rawHeaderValues(rawHeaders, 'x-forwarded-host')).toEqual([
      'dash--kube-system.localhost:8001',
    ])
    expect(rawHeaderValues(rawHeaders, 'x-forwarded-proto')).toEqual(['http'])
  })

  test('gets redirects and cookies as if the add-on were alone there', async () => {
    const prefix = prefixOf('kube-system', 'dash:web')
    lab.api.answers.set(`${prefix}/old`, (_request, response) =>
      response
        .writeHead(302, {
          location: `${prefix}/new?a=b`,
          'set-cookie': ['sid=1; Domain=localhost; Path=/', `x=y; Path=${prefix}/`],
        })
        .end(),
    )
    const { headers } = await proxy.ask('/old', ['Host: dash--kube-system.localhost'])
    expect(headers['location']).toBe('/new?a=b')
    expect(headers['set-cookie']).toBe('sid=1; Path=/\nx=y; Path=/')
    expect(headers['content-security-policy']).toBeUndefined()
  })

  test('[SEC-R1801] whose names do not fit into a label is found again', async () => {
    const long = 'a'.repeat(40)
    const path = `${prefixOf('apps', `https:${long}:443`)}/x`
    const headers = ['Sec-Fetch-Site: none', 'Sec-Fetch-Mode: navigate', 'Host: localhost:8001']
    const spare = prefixOf('n'.repeat(60), long)
    lab.api.cluster = {
      ...cluster,
      services: [...cluster.services, service('n'.repeat(60), long, [{ name: 'web', port: 80 }])],
    }
    const { location = '' } = (await proxy.ask(`${spare}/x?y`, headers)).headers
    const host = new URL(location).host
    expect(location).toBe(`http://${host}/x?y`)
    expect(host).toMatch(/^a{22}-[0-9a-f]{40}\.localhost:8001$/)
    // By the proxy that has named it, and by another one that lists the Services.
    for (const each of [proxy, await lab.proxy()]) {
      expect((await each.ask('/x?y', [`Host: ${host}`])).status).toBe(200)
      expect(lab.api.last.url).toBe(`${prefixOf('n'.repeat(60), `${long}:web`)}/x?y`)
    }
    expect((await proxy.ask(path, headers)).headers['location']).toBe(
      `http://443--${long}--apps.localhost:8001/x`,
    )
  })

  test('[SEC-R1801] that no Service has is not forwarded', async () => {
    const host = `${'a'.repeat(22)}-${'0'.repeat(40)}.localhost`
    expect((await proxy.ask('/', [`Host: ${host}`])).status).toBe(404)
    lab.api.cluster = { ...cluster, mayListAll: false }
    expect((await proxy.ask('/', [`Host: ${host}`])).status).toBe(404)
    expect(lab.api.seen.filter(({ url }) => url.includes('/proxy'))).toEqual([])
  })

  test('takes a WebSocket of its own page', async () => {
    const { head } = await proxy.handshake('/live?x=1', [
      'Host: dash--kube-system.localhost:8001',
      'Origin: http://dash--kube-system.localhost:8001',
      ...websocketHeaders,
    ])
    expect(head.status).toBe(101)
    expect(lab.api.last.url).toBe(`${prefixOf('kube-system', 'dash:web')}/live?x=1`)
    // Of which the API server could not know that it is one.
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'sec-fetch-site')).toEqual(['same-origin'])
  })

  test('may have service workers, of which the API server knows nothing', async () => {
    await proxy.ask('/sw.js', ['Host: dash--kube-system.localhost', 'Service-Worker: script'])
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'service-worker')).toEqual([])
  })

  test('asks for the ports of a service once for many requests', async () => {
    const own = await lab.proxy()
    await Promise.all(Array.from({ length: 8 }, () => own.ask('/', ['Host: shop--apps.localhost'])))
    const lookups = lab.api.seen.filter(({ url }) => !url.includes('/proxy'))
    expect(lookups.map(({ url }) => url)).toEqual(['/api/v1/namespaces/apps/services/shop'])
  })

  test('finds a service that has come into being since', async () => {
    const late = ['Host: late--apps.localhost']
    await proxy.ask('/', late)
    expect(lab.api.last.url).toBe(`${prefixOf('apps', 'late')}/`)
    const services = [service('apps', 'late', [{ name: 'web', port: 80 }])]
    lab.api.cluster = { ...cluster, services }
    await proxy.ask('/', late)
    expect(lab.api.last.url).toBe(`${prefixOf('apps', 'late:web')}/`)
  })

  test('that is none says how one looks', async () => {
    const answer = await proxy.ask('/', ['Host: dash.localhost'])
    expect(answer.status).toBe(404)
    expect(answer.body).toContain('SERVICE--NAMESPACE.localhost')
  })

  test('[SEC-R1801] of the earlier form names the one of today', async () => {
    const answer = await proxy.ask('/', ['Host: https.dash.kube-system.localhost:8001'])
    expect(answer.status).toBe(404)
    expect(answer.body).toContain('http://https--dash--kube-system.localhost:8001/')
    expect(lab.api.seen).toEqual([])
  })
})

describe('[SEC-R1802] cookies', () => {
  const dash = 'dash--kube-system.localhost:8001'
  const today = prefixOf('kube-system', 'dash')
  const setter = (path: string, cookie: string): void =>
    void lab.api.answers.set(path, (_request, response) =>
      response.writeHead(200, { 'set-cookie': cookie }).end(),
    )
  const forwarded = (): string[] => rawHeaderValues(lab.api.last.rawHeaders, 'cookie')

  test.each([
    [
      'on its own origin',
      [`Host: ${dash}`],
      '/login',
      '/page',
      `${today}:web/login`.replace('/proxy:web', ':web/proxy'),
    ],
    ['on the plain origin', [], `${today}/login`, `${today}/page`, `${today}/login`],
    ['of the API itself', [], '/apis/login', '/apis/page', '/apis/login'],
  ])(
    '%s go back to whom they came from, and no other does',
    async (_where, host, login, page, upstream) => {
      const own = await lab.proxy()
      setter(upstream, 'sid=1; HttpOnly; Path=/')
      await own.ask(page, [...host, 'Cookie: sid=1'])
      expect(forwarded()).toEqual([])
      await own.ask(login, host)
      await own.ask(page, [...host, 'Cookie: theme=dark; sid=1; sid=2', 'Cookie: tossed=1'])
      expect(forwarded()).toEqual(['sid=1'])
      const others = [
        ['/page', ['Host: shop--apps.localhost:8001']],
        ['/page', ['Host: web--dash--kube-system.localhost:8001']],
        [`${prefixOf('apps', 'shop')}/page`, []],
        ['/api/v1/pods', []],
      ] as const
      const isApi = upstream.startsWith('/apis')
      for (const [path, headers] of isApi ? others.slice(0, -1) : others) {
        await own.ask(path, [...headers, 'Cookie: sid=1'])
        expect(forwarded()).toEqual([])
      }
      // Another run, or the proxy of another cluster on the same port.
      await (await lab.proxy()).ask(page, [...host, 'Cookie: sid=1'])
      expect(forwarded()).toEqual([])
    },
  )

  test('of a WebSocket handshake count too, and are filtered there', async () => {
    const own = await lab.proxy()
    const upstream = `${prefixOf('kube-system', 'dash:web')}/live`
    lab.api.upgradeAnswers.set(
      upstream,
      'HTTP/1.1 403 Forbidden\r\nSet-Cookie: sid=1\r\nContent-Length: 0\r\n\r\n',
    )
    const headers = [`Host: ${dash}`, ...websocketHeaders, 'Cookie: sid=1; x=1']
    await own.handshake('/live', headers)
    expect(forwarded()).toEqual([])
    await own.handshake('/live', headers)
    expect(forwarded()).toEqual(['sid=1'])
    lab.api.upgradeAnswers.delete(upstream)
  })
})

describe('[CRED-P15] from one add-on to another', () => {
  const other = ['Host: shop--apps.localhost:8001']

  test.each([
    ['a fetch', ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: empty']],
    [
      'an image',
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image'],
    ],
    [
      'a neighbour in its namespace',
      ['Sec-Fetch-Site: same-site', 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: script'],
    ],
    [
      'a frame',
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: iframe'],
    ],
    ['a fetch in an older browser', ['Origin: http://dash--kube-system.localhost:8001']],
    ['a page of the plain origin', ['Origin: http://localhost:8001']],
  ])('%s is refused', async (_name, headers) => {
    expect((await proxy.ask('/', [...other, ...headers])).status).toBe(403)
    expect(lab.api.seen).toEqual([])
  })

  test('a form is refused, a link is not', async () => {
    const navigation = [
      'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-Mode: navigate',
      'Sec-Fetch-Dest: document',
    ]
    expect((await proxy.ask('/', [...other, ...navigation], 'POST')).status).toBe(403)
    expect((await proxy.ask('/', [...other, ...navigation])).status).toBe(200)
  })

  test('the API is out of reach: the plain origin is another one', async () => {
    for (const headers of [
      ['Origin: http://dash--kube-system.localhost:8001'],
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors'],
    ])
      expect((await proxy.ask('/api/v1/secrets', headers)).status).toBe(403)
  })
})

describe("[CRED-P9] the seed's address of a service", () => {
  const seed = '/api/v1/proxy/namespaces/kube-system/services/dash'
  const today = prefixOf('kube-system', 'dash')

  test.each([
    [`${seed}/a?add-auth=true`, `${today}/a?add-auth=true`],
    [`${seed}`, today],
    [`${today}/a%20b?c`, `${today}/a%20b?c`],
    [
      '/api/v1/namespaces/a/services/https%3Ab%3A/proxy/',
      '/api/v1/namespaces/a/services/https:b:/proxy/',
    ],
  ])('%s works beside its own', async (path, url) => {
    expect((await proxy.ask(path)).status).toBe(200)
    expect(lab.api.last.url).toBe(url)
  })

  test.each([
    [`${seed}/x?add-auth=true`, 'http://dash--kube-system.localhost:8001/x?add-auth=true'],
    [`${today}`, 'http://dash--kube-system.localhost:8001/'],
    [`${today.replace('dash', 'dash:web')}/`, 'http://web--dash--kube-system.localhost:8001/'],
    [
      `${today.replace('dash', 'https:dash:443')}/`,
      'http://443--dash--kube-system.localhost:8001/',
    ],
  ])('[CRED-P15] %s leads a browser to %s', async (path, location) => {
    const headers = ['Host: 127.0.0.1:8001', 'Sec-Fetch-Site: none', 'Sec-Fetch-Mode: navigate']
    const answer = await proxy.ask(path, headers)
    expect(answer).toMatchObject({ status: 307, headers: { location } })
    expect(lab.api.seen).toEqual([])
  })

  test.each([
    '/api/v1/namespaces/a/services%2Fb/proxy/',
    '/api/v1/namespaces/a/services/b%2Fproxy/',
    '/api%2Fv1/proxy/namespaces/a/services/b/',
    '/api/v1/namespaces/a/services/b%2Fproxy%2Fc/proxy/',
  ])('[CRED-P15] cannot be hidden as %s', async (path) => {
    expect((await proxy.ask(path)).status).toBe(400)
    expect(lab.api.seen).toEqual([])
  })

  test('its forms are refused on the shared origin', async () => {
    const headers = ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: navigate']
    expect((await proxy.ask(`${today}/`, headers, 'POST')).status).toBe(403)
  })
})

describe('[CRED-P7] the page at /', () => {
  const browser = ['Accept: text/html,application/xhtml+xml,*/*;q=0.8', 'Host: localhost:8001']
  const links = (page: string): string[] =>
    [...page.matchAll(/<li><a href="([^"]+)"><b>/g)].map(([, href]) => href ?? '')

  test('lists for a browser what the user may open', async () => {
    const { status, body } = await proxy.ask('/', browser)
    expect(status).toBe(200)
    expect(links(body)).toEqual([
      'http://shop--apps.localhost:8001/',
      'http://https--shop--apps.localhost:8001/',
      'http://dash--kube-system.localhost:8001/',
      'http://plain--kube-system.localhost:8001/',
      'http://tls--kube-system.localhost:8001/',
    ])
    expect(body).toContain('<strong>jane</strong>')
    expect(body).toContain('href="/api/v1/namespaces/apps/services"')
  })

  test('lists only what the rules of the user cover', async () => {
    const grant = (extra: object) => ({
      verbs: ['get'],
      apiGroups: [''],
      resources: ['services/proxy'],
      ...extra,
    })
    lab.api.cluster = {
      ...cluster,
      mayProxyAll: false,
      rules: {
        apps: [grant({ resourceNames: ['https:shop:https'] })],
        'kube-system': [grant({ verbs: ['create'] }), grant({ resources: ['services'] })],
      },
    }
    const { body } = await proxy.ask('/', browser)
    expect(links(body)).toEqual(['http://https--shop--apps.localhost:8001/'])
  })

  test('looks into the own namespace where nothing may be listed', async () => {
    lab.api.cluster = {
      ...cluster,
      mayListAll: false,
      services: [service('default', 'mine', [{ port: 80 }])],
    }
    const { body } = await proxy.ask('/', browser)
    expect(links(body)).toEqual(['http://mine--default.localhost:8001/'])
  })

  test('links by path where names below localhost would lead elsewhere', async () => {
    const remote = await lab.proxy({
      filter: { acceptHosts: '.*', acceptPaths: '.*', rejectPaths: '', rejectMethods: '' },
    })
    const { body } = await remote.ask('/', ['Accept: text/html', 'Host: proxy.lan'])
    expect(links(body)).toContain(`${prefixOf('kube-system', 'dash:web')}/`)
  })

  test('shows foreign text as text', async () => {
    const name = '"><script>alert(1)</script>'
    const services = [
      service('a', name, [{ port: 80 }]),
      service('a', 'b', [{ port: 80, name: `http-${name}` }]),
    ]
    lab.api.cluster = { ...cluster, services, namespaces: [name] }
    const { body, status } = await proxy.ask('/', browser)
    expect(status).toBe(200)
    expect(links(body)).toEqual([])
    expect(body).not.toContain('<script')
    expect(body).toContain('&lt;script&gt;')
  })

  test('needs nothing from outside and runs nothing', async () => {
    const { headers, body } = await proxy.ask('/', browser)
    const policy = headers['content-security-policy'] ?? ''
    expect(policy).toMatch(/default-src 'none'/)
    expect(policy).toMatch(/frame-ancestors 'none'/)
    expect(policy).not.toContain('unsafe')
    expect(body).not.toMatch(/<script|<img|<link|url\(/)
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-frame-options': 'DENY' })
  })

  test.each([['*/*'], ['application/json']])('is the API for who accepts %s', async (accept) => {
    const { body } = await proxy.ask('/', [`Accept: ${accept}`])
    expect(JSON.parse(body)).toEqual({ paths: ['/api', '/apis'] })
  })

  test('is the API for who asks for nothing special', async () => {
    expect(JSON.parse((await proxy.ask('/')).body)).toEqual({ paths: ['/api', '/apis'] })
  })
})
