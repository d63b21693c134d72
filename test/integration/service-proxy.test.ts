import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../../src/core/index.ts'
import { eventually } from '../support/eventually.ts'
import { type HttpsCaller, requestOn } from '../support/https-caller.ts'
import {
  allOfProxy,
  gullibleAddonFeature,
  outwardAddress,
  ServiceProxyLab,
} from '../support/service-proxy-lab.ts'
import type { TcpTarget } from '../support/tcp-target.ts'

if (outwardAddress === undefined) console.warn('skipped: this machine has no address of its own')

/** What the backend saw of a request. */
interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly raw: string[]
  readonly body: string
}

describe.skipIf(outwardAddress === undefined)('the service proxy', () => {
  let lab: ServiceProxyLab
  let admin: HttpsCaller
  let backend: TcpTarget
  const base = '/api/v1/namespaces/default/services/web/proxy'

  const pages: Record<string, (request: IncomingMessage) => [number, object, string | Buffer]> = {
    '/html': () => [
      200,
      { 'content-type': 'text/html', 'content-length': 24 },
      '<a href="/x"><b>ok</b>\n\n',
    ],
    '/gzip': () => [
      200,
      { 'content-type': 'text/html; charset=utf-8', 'content-encoding': 'gzip' },
      gzipSync('<a href="/x">'),
    ],
    '/moved': () => [302, { location: '/elsewhere?x=1' }, ''],
    '/moved-out': () => [302, { location: 'http://169.254.169.254/latest' }, ''],
    '/cookie': () => [200, { 'set-cookie': ['a=1; Path=/in; Domain=x', 'b=2; HttpOnly'] }, ''],
    '/cors': () => [
      200,
      {
        'access-control-allow-origin': '*',
        'access-control-allow-credentials': 'true',
        'x-kept': 'yes',
        'www-authenticate': 'Basic',
        'strict-transport-security': 'max-age=1',
        'referrer-policy': 'no-referrer',
      },
      '',
    ],
    '/cache': () => [200, { 'cache-control': 'public, max-age=60', vary: 'Accept' }, ''],
    '/none': () => [204, {}, ''],
    '/teapot': () => [418, { 'x-teapot': 'yes' }, 'short'],
  }

  beforeAll(async () => {
    lab = await ServiceProxyLab.open([], [gullibleAddonFeature])
    admin = await lab.server.admin()
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const page = pages[(request.url ?? '').split('?', 1)[0] ?? '']
      if (page) {
        const [status, headers, body] = page(request)
        response.writeHead(status, headers as Record<string, string>).end(body)
        return
      }
      const seen = {
        method: request.method,
        url: request.url,
        headers: request.headers,
        raw: request.rawHeaders,
        body: await text(request),
      }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(seen))
    }
    backend = await lab.backend((request, response) => void answer(request, response))
    await lab.addon('web', backend)
    await lab.addon('named', backend, { portName: 'http', port: 8080 })
  })
  afterAll(() => lab.close())

  const seenAt = async (path: string, headers = {}): Promise<Seen> => {
    const answer = await admin.get(path, headers)
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`)
    return JSON.parse(answer.text)
  }

  test.each([
    ['the subresource', `${base}/a/b?c=d&e`],
    ['the form of the proposal', '/api/v1/proxy/namespaces/default/services/web/a/b?c=d&e'],
    ['the number of its port', '/api/v1/namespaces/default/services/web:80/proxy/a/b?c=d&e'],
    ['a scheme', '/api/v1/namespaces/default/services/http:web:/proxy/a/b?c=d&e'],
    ['a name of its port', '/api/v1/namespaces/default/services/named:http/proxy/a/b?c=d&e'],
    ['a number for a name', '/api/v1/namespaces/default/services/:named:8080/proxy/a/b?c=d&e'],
    ['its Pod', '/api/v1/namespaces/default/pods/web/proxy/a/b?c=d&e'],
    ['the old form of its Pod', '/api/v1/proxy/namespaces/default/pods/http:web:/a/b?c=d&e'],
  ])('reaches the add-on by %s [ADDON-R9, ADDON-P1]', async (_name, path) => {
    const seen = await seenAt(path)
    expect([seen.method, seen.url]).toEqual(['GET', '/a/b?c=d&e'])
    expect(seen.headers['x-forwarded-uri']).toBe(path.split('?')[0])
    expect(seen.headers['x-forwarded-for']).toBe('127.0.0.1')
    expect(seen.headers['audit-id']).toMatch(/^[\w-]{36}$/)
    expect(seen.headers['host']).toBe(`127.0.0.1:${lab.server.port}`)
  })

  test.each([
    ['/a%2Fb', '/a%2Fb'],
    ['//x', '//x'],
    ['/?x=%zz;y=&&', '/?x=%zz;y=&&'],
    ['/a;b=c/', '/a;b=c/'],
  ])('passes the bytes of %j on as they are [ADDON-R9]', async (asked, seen) => {
    expect((await seenAt(base + asked)).url).toBe(seen)
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'passes %s with its body',
    async (method) => {
      const answer = await admin.request(`${base}/x`, { method, body: 'hello' })
      const seen: Seen = JSON.parse(answer.text)
      expect([seen.method, seen.body]).toEqual([method, 'hello'])
    },
  )

  test('passes a body of unknown length, and none where there is none', async () => {
    const chunked = await admin.request(`${base}/x`, {
      method: 'POST',
      body: 'hello',
      headers: { 'transfer-encoding': 'chunked' },
    })
    expect(chunked.object).toMatchObject({ body: 'hello' })
    const empty = await admin.request(`${base}/x`, { method: 'POST' })
    expect(empty.object).toMatchObject({ body: '', headers: { 'content-length': '0' } })
  })

  test('serves HTTP/2 as well, bodies and several cookies included', async () => {
    const session = await admin.http2()
    const answer = await requestOn(
      session,
      { ':path': `${base}/x`, ':method': 'POST', cookie: 'a=1; b=2' },
      'over http2',
    )
    expect(answer.object).toMatchObject({
      method: 'POST',
      body: 'over http2',
      headers: { cookie: 'a=1; b=2', host: `127.0.0.1:${lab.server.port}` },
    })
    const removed = await requestOn(session, { ':path': `${base}/x`, ':method': 'DELETE' }, 'why')
    expect(removed.object).toMatchObject({ method: 'DELETE', body: 'why' })
    const empty = await requestOn(session, { ':path': `${base}/x`, ':method': 'POST' })
    expect(empty.object).toMatchObject({ body: '', headers: { 'content-length': '0' } })
    const cookies = await requestOn(session, { ':path': `${base}/cookie` })
    expect(cookies.headers['set-cookie']).toHaveLength(2)
  })

  test.each([
    ['GET', base, `${base}/`],
    ['HEAD', base, `${base}/`],
    ['GET', `${base}?x=y`, `${base}/?x=y`],
    [
      'GET',
      '/api/v1/proxy/namespaces/default/services/web',
      '/api/v1/proxy/namespaces/default/services/web/',
    ],
  ])('sends %s %s to its slash [ADDON-P4]', async (method, path, location) => {
    const answer = await admin.request(path, { method })
    expect([answer.status, answer.headers.location]).toEqual([301, location])
  })

  test('a POST without a slash is not redirected', async () => {
    const answer = await admin.request(base, { method: 'POST', body: 'x' })
    expect(answer.object).toMatchObject({ url: '/', body: 'x' })
  })

  describe('of an answer', () => {
    test('pages are rewritten, and their length is that of the result [ADDON-P4]', async () => {
      const { text: page, headers } = await admin.get(`${base}/html`)
      expect(page).toBe(`<a href="${base}/x"><b>ok</b>\n\n`)
      expect(headers['content-length']).toBeUndefined()
    })

    test('compressed pages are rewritten [ADDON-P4]', async () => {
      const request = admin.send(`${base}/gzip`)
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      expect(String(gunzipSync(Buffer.concat(chunks)))).toBe(`<a href="${base}/x">`)
    })

    test('a coding that no page could be read in is not asked for [ADDON-P4]', async () => {
      const { object } = await admin.get(`${base}/x`, { 'accept-encoding': 'zstd, br' })
      const { raw } = object as unknown as { raw: string[] }
      expect(raw[raw.findIndex((name) => /^accept-encoding$/i.test(name)) + 1]).toBe('br')
    })

    test('the old form of the path is written into pages where it was used [ADDON-P4]', async () => {
      const old = '/api/v1/proxy/namespaces/default/services/web'
      expect((await admin.get(`${old}/html`)).text).toContain(`href="${old}/x"`)
    })

    test.each([
      ['/moved', `${base}/elsewhere?x=1`],
      ['/moved-out', 'http://169.254.169.254/latest'],
    ])(
      'the redirect of %s is passed on and not followed [ADDON-P4, ADDON-T54]',
      async (path, to) => {
        const answer = await admin.get(base + path)
        expect([answer.status, answer.headers.location]).toEqual([302, to])
      },
    )

    test('cookies are narrowed to the add-on [ADDON-P4, ADDON-T57]', async () => {
      const { headers } = await admin.get(`${base}/cookie`)
      expect(headers['set-cookie']).toEqual([
        `a=1; Path=${base}/in`,
        `b=2; HttpOnly; Path=${base}/`,
      ])
    })

    test('what concerns the shared origin is taken out [ADDON-R5, ADDON-R11]', async () => {
      const { headers } = await admin.get(`${base}/cors`)
      expect(headers).toMatchObject({ 'x-kept': 'yes', 'referrer-policy': 'same-origin' })
      for (const name of [
        'access-control-allow-origin',
        'access-control-allow-credentials',
        'www-authenticate',
        'strict-transport-security',
      ])
        expect(headers[name]).toBeUndefined()
    })

    test.each([
      ['/teapot', 'no-cache, private'],
      ['/cache', 'private, max-age=60'],
    ])('caches are told that %s is for one user [ADDON-T59]', async (path, expected) => {
      expect((await admin.get(base + path)).headers['cache-control']).toBe(expected)
    })

    test('status, headers and body come back as they are [ADDON-R11]', async () => {
      const answer = await admin.get(`${base}/teapot`)
      expect([answer.status, answer.headers['x-teapot'], answer.text]).toEqual([
        418,
        'yes',
        'short',
      ])
      const none = await admin.get(`${base}/none`)
      expect([none.status, none.text]).toEqual([204, ''])
      const head = await admin.request(`${base}/html`, { method: 'HEAD' })
      expect([head.status, head.text]).toEqual([200, ''])
    })
  })

  describe('refuses', () => {
    test.each([
      ['a:b:c:d'],
      ['ftp:web:80'],
      [':80'],
      ['http::80'],
      ['web%20'],
      ['w%C3%A9b'],
      ['web:80%2F'],
    ])('the id %s with a 400 [ADDON-T55]', async (id) => {
      const answer = await admin.get(`/api/v1/namespaces/default/services/${id}/proxy/`)
      expect(answer.status).toBe(400)
    })

    test.each([
      ['a Service that is not there', 'none', 404, 'services "none" not found'],
      ['a port that is not there', 'web:81', 503, 'no service port 81 found for service "web"'],
      [
        'a name that is not there',
        'web:http',
        503,
        'no endpoints available for service "web:http"',
      ],
      ['a named port without its name', 'named', 503, 'no endpoints available for service "named"'],
    ])('%s [ADDON-P1]', async (_name, id, status, message) => {
      const answer = await admin.get(`/api/v1/namespaces/default/services/${id}/proxy/`)
      expect([answer.status, answer.object['message']]).toEqual([status, message])
    })

    test.each(['TRACE', 'PROPFIND'])('%s [ADDON-T60]', async (method) => {
      expect((await admin.request(`${base}/`, { method })).status).toBe(405)
    })

    test('dryRun', async () => {
      expect((await admin.get(`${base}/?dryRun=All`)).status).toBe(400)
    })

    test('paths that climb', async () => {
      for (const path of ['/../x', '/%2e%2e/x', '/a/./b'])
        expect((await admin.get(base + path)).status).toBe(400)
    })

    test('a backend that is not there with a 503 [ADDON-P1]', async () => {
      const gone = await lab.backend(() => {})
      await gone.close()
      const path = await lab.addon('gone', gone)
      const answer = await admin.get(`${path}/`)
      expect(answer.status).toBe(503)
      expect(answer.object['message']).toMatch(/^error trying to reach service: .*refused/)
    })
  })

  describe('never dials [ADDON-T52, ADDON-P2]', () => {
    const places: [string, string][] = [
      ['loopback', '127.0.0.1'],
      ['another loopback', '127.8.8.8'],
      ['link-local', '169.254.169.254'],
      ['IPv6 loopback', '::1'],
      ['multicast', '224.0.0.1'],
      ['nowhere', '0.0.0.0'],
    ]

    test.each(places)('a Pod that says it is at %s', async (name, host) => {
      const id = name.toLowerCase().replaceAll(' ', '-')
      const vetted = { host: '10.9.9.9', port: backend.port }
      await lab.pod(id, vetted, 'default', host)
      const answer = await admin.get(`/api/v1/namespaces/default/pods/${id}/proxy/`)
      expect([answer.status, answer.object['message']]).toEqual([400, 'address not allowed'])
    })

    test.each([
      ['an endpoint without a Pod', undefined],
      ['an endpoint of a Pod elsewhere', { kind: 'Pod', namespace: 'kube-system', name: 'web' }],
      [
        'an endpoint that is not where its Pod is',
        { kind: 'Pod', namespace: 'default', name: 'far' },
      ],
      ['an endpoint of a Pod that is not there', { kind: 'Pod', namespace: 'default', name: 'x' }],
      ['an endpoint of another kind', { kind: 'Node', namespace: 'default', name: 'web' }],
    ])('%s', async (name, targetRef) => {
      const id = name.toLowerCase().replaceAll(' ', '-')
      if (targetRef?.name === 'far') await lab.pod('far', { host: '10.9.9.9', port: 80 })
      await lab.create(wellKnownKinds.service, {
        metadata: { name: id, namespace: 'default' },
        spec: { ports: [{ port: 80 }] },
      })
      await lab.create(wellKnownKinds.endpointSlice, {
        metadata: {
          name: id,
          namespace: 'default',
          labels: { 'kubernetes.io/service-name': id },
        },
        addressType: 'IPv4',
        ports: [{ name: '', port: backend.port, protocol: 'TCP' }],
        endpoints: [{ addresses: [outwardAddress], ...(targetRef && { targetRef }) }],
      })
      const answer = await admin.get(`/api/v1/namespaces/default/services/${id}/proxy/`)
      expect([answer.status, answer.object['message']]).toEqual([
        503,
        `no endpoints available for service "${id}"`,
      ])
    })

    test('a Service of type ExternalName', async () => {
      await lab.create(wellKnownKinds.service, {
        metadata: { name: 'outside', namespace: 'default' },
        spec: { type: 'ExternalName', externalName: 'example.com' },
      })
      const answer = await admin.get('/api/v1/namespaces/default/services/outside/proxy/')
      expect(answer.status).toBe(503)
    })
  })

  test('an add-on that answers before it has read the request is passed on', async () => {
    const early = await lab.backend((_request, response) => {
      response.writeHead(413).end('too large')
    })
    const path = await lab.addon('early', early)
    const answer = await admin.request(`${path}/`, {
      method: 'POST',
      body: Buffer.alloc(1_000_000),
    })
    expect([answer.status, answer.text]).toEqual([413, 'too large'])
  })

  test('every request is in the audit log, with its endpoint [ADDON-P6]', async () => {
    const { headers } = await admin.get(`${base}/audited?add-auth=true`)
    const refused = await admin.get(`${base}/?add-auth=maybe`)
    const event = (id: unknown) =>
      eventually('it is recorded', async () => {
        const log = await readFile(join(lab.server.dataDirectory, 'audit.log'), 'utf8')
        const found = log.split('\n').filter((line) => line.includes(`"auditID":"${String(id)}"`))
        const last = found.find((line) => line.includes('"stage":"ResponseComplete"'))
        return last === undefined ? undefined : JSON.parse(last)
      })
    expect(await event(headers['audit-id'])).toMatchObject({
      verb: 'get',
      objectRef: { resource: 'services', namespace: 'default', name: 'web', subresource: 'proxy' },
      responseStatus: { code: 200 },
      annotations: {
        'sallyport.dev/proxied-to': `http://${outwardAddress}:${backend.port}`,
        'sallyport.dev/add-auth': 'query',
      },
    })
    expect(await event(refused.headers['audit-id'])).toMatchObject({
      responseStatus: { code: 400 },
    })
  })

  describe('a node', () => {
    const node = (name: string, address: string, port?: number) =>
      lab.create(wellKnownKinds.node, { metadata: { name } }).then((made) =>
        lab.server.serving.view.write(
          'update',
          {
            ...made,
            status: {
              addresses: [{ type: 'InternalIP', address }],
              ...(port && { daemonEndpoints: { kubeletEndpoint: { Port: port } } }),
            },
          },
          { subresource: 'status' },
          AbortSignal.timeout(5_000),
        ),
      )

    test('is reached at the port that is named [ADDON-P1]', async () => {
      await node('one', outwardAddress ?? '')
      expect((await seenAt(`/api/v1/nodes/one:${backend.port}/proxy/a?b`)).url).toBe('/a?b')
      expect((await seenAt(`/api/v1/proxy/nodes/http:one:${backend.port}/a`)).url).toBe('/a')
    })

    test('is asked by TLS at the port of its kubelet, which must prove itself [ADDON-P1]', async () => {
      await node('two', outwardAddress ?? '', backend.port)
      const answer = await admin.get('/api/v1/nodes/two/proxy/pods')
      expect(answer.status).toBe(503)
    })

    test('on loopback is never dialled [ADDON-T52]', async () => {
      await node('three', '127.0.0.1')
      const answer = await admin.get(`/api/v1/nodes/three:${backend.port}/proxy/`)
      expect([answer.status, answer.object['message']]).toEqual([400, 'address not allowed'])
    })
  })

  test('verbs follow methods, and both names of a Service are names of their own [ADDON-P1]', async () => {
    const reader = await lab.user('reader', [allOfProxy('get')])
    expect((await reader.get(`${base}/`)).status).toBe(200)
    expect((await reader.post(`${base}/`, 'x')).status).toBe(403)
    const narrow = await lab.user('narrow', [{ ...allOfProxy('get'), resourceNames: ['web'] }])
    expect((await narrow.get(`${base}/`)).status).toBe(200)
    expect((await narrow.get('/api/v1/namespaces/default/services/web:80/proxy/')).status).toBe(403)
    const old = await narrow.get('/api/v1/proxy/namespaces/default/services/web/')
    expect(old.status).toBe(200)
  })

  test('discovery shows the subresources as Kubernetes does [ADDON-P1]', async () => {
    const { object } = await admin.get('/api/v1')
    expect(object['resources']).toContainEqual({
      name: 'services/proxy',
      singularName: '',
      namespaced: true,
      kind: 'ServiceProxyOptions',
      verbs: ['create', 'delete', 'get', 'patch', 'update'],
    })
  })
})
