import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../../src/core/index.ts'
import { sandboxPolicy } from '../../src/http/index.ts'
import { type HttpsCaller, requestOn } from '../support/https-caller.ts'
import { outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'

const policyOf = (headers: IncomingHttpHeaders): string =>
  String(headers['content-security-policy'] ?? '')

/** What the add-on responds with. */
let reply: { status: number; headers: OutgoingHttpHeaders; body: string }
const seen: string[] = []
const page = '<script>fetch("/api/v1/namespaces/kube-system/secrets")</script>'
const html = { status: 200, headers: { 'content-type': 'text/html' }, body: page }

describe.skipIf(outwardAddress === undefined)("content on the API's origin", () => {
  let lab: ServiceProxyLab
  let admin: HttpsCaller
  let session: ClientHttp2Session | undefined
  let port: number

  beforeAll(async () => {
    const unlimited = ['--addon-requests-per-second', '1000000', '--addon-request-burst', '1000000']
    lab = await ServiceProxyLab.open(unlimited)
    admin = await lab.server.admin()
    session = await admin.http2().catch(() => undefined)
    const backend = await lab.backend((request, response) => {
      seen.push(`${request.method} ${request.url}`)
      response.writeHead(reply.status, reply.headers)
      response.end(reply.body)
    })
    port = backend.port
    await lab.addon('web', backend)
    await lab.addon('web', backend, { namespace: 'kube-system' })
    const node = await lab.create(wellKnownKinds.node, { metadata: { name: 'n' } })
    const status = { addresses: [{ type: 'InternalIP', address: outwardAddress }] }
    await lab.server.serving.view.write(
      'update',
      { ...node, status },
      { subresource: 'status' },
      AbortSignal.timeout(10_000),
    )
  })
  afterAll(() => lab.close())

  /** Every form of a path to an object behind the proxy. */
  function formsOf(resource: string, namespace: string): string[] {
    const parent = resource === 'nodes' ? 'nodes' : `namespaces/${namespace}/${resource}`
    const number = resource === 'services' ? 80 : port
    const name = resource === 'nodes' ? 'n' : 'web'
    const ids = [`${name}:${number}`, `http:${name}:${number}`, `:${name}:${number}`]
    if (resource !== 'nodes') ids.push(name, `${name}:`, `http:${name}:`)
    return ids.flatMap((id) => [
      `/api/v1/${parent}/${id}/proxy/`,
      `/api/v1/${parent}/${id}/proxy/a/b.html?c`,
      `/api/v1/${parent}/${id}/pr%6Fxy/a%2Fb`,
      `/%61pi/v1/${parent}/${id}/proxy//x`,
      `/api/v1/proxy/${parent}/${id}/`,
      `/api/v1/pro%78y/${parent}/${id}/a/b.svg`,
    ])
  }

  const targets: [string, string, boolean][] = [
    ['services', 'default', true],
    ['pods', 'default', true],
    ['nodes', '', true],
    ['pods', 'kube-system', true],
    ['services', 'kube-system', false],
  ]
  const types = [
    'text/html; charset=utf-8',
    'application/xhtml+xml',
    'image/svg+xml',
    'text/xml',
    'application/xml',
    'application/pdf',
    'text/javascript',
    'application/json',
    'multipart/x-mixed-replace; boundary=x',
    'image/png',
    'nonsense',
    undefined,
  ]

  test.each(targets)(
    '[SEC-R101] %s in %j is sandboxed: %j, by every path, type, status and method',
    { timeout: 60_000 },
    async (resource, namespace, isSandboxed) => {
      const wrong: string[] = []
      const check = async (path: string, method: string, what: string): Promise<void> => {
        const asks = [admin.request(path, { method })]
        if (session) asks.push(requestOn(session, { ':path': path, ':method': method }))
        for (const { headers, status } of await Promise.all(asks)) {
          const isFit =
            status === reply.status &&
            policyOf(headers) ===
              (isSandboxed ? `default-src 'self', ${sandboxPolicy}` : "default-src 'self'") &&
            headers['x-content-type-options'] === 'nosniff'
          if (!isFit) wrong.push(`${method} ${path} ${what}: ${status} ${policyOf(headers)}`)
        }
      }
      const own = {
        'content-security-policy': "default-src 'self'",
        'x-content-type-options': 'none',
      }
      for (const path of formsOf(resource, namespace)) {
        reply = { ...html, headers: { ...html.headers, ...own } }
        await check(path, 'GET', 'html')
      }
      const [path = ''] = formsOf(resource, namespace)
      for (const status of [200, 206, 301, 401, 404, 500, 599])
        for (const type of types)
          for (const method of ['GET', 'HEAD', 'POST']) {
            reply = {
              status,
              headers: { ...own, ...(type && { 'content-type': type }) },
              body: page,
            }
            await check(path, method, `${status} ${type}`)
          }
      expect(wrong).toEqual([])
    },
  )

  test('[SEC-R101] a policy of the add-on does not replace the sandbox', async () => {
    const [path = ''] = formsOf('services', 'default')
    for (const own of [
      'sandbox allow-scripts allow-same-origin',
      "default-src 'none'",
      '',
      'x, y;',
    ]) {
      reply = { ...html, headers: { ...html.headers, 'content-security-policy': own } }
      const policy = policyOf((await admin.get(path)).headers)
      expect(policy).toBe(own === '' ? policy : `${own}, ${sandboxPolicy}`)
      expect(policy.endsWith(sandboxPolicy)).toBe(true)
    }
  })

  test('[SEC-R101] a stream of documents is none for a browser that navigates to it', async () => {
    const [path = ''] = formsOf('services', 'default')
    reply = { ...html, headers: { 'content-type': 'multipart/x-mixed-replace; boundary=x' } }
    const typeFor = async (headers: Record<string, string>) =>
      (await admin.get(path, headers)).headers['content-type']
    expect(await typeFor({ 'sec-fetch-mode': 'navigate' })).toBe('application/octet-stream')
    expect(await typeFor({})).toBe('multipart/x-mixed-replace; boundary=x')
  })

  /** Response headers by what happens to them on an origin that add-ons share with the API. */
  const dropped = [
    'Accept-CH',
    'Access-Control-Allow-Credentials',
    'Access-Control-Allow-Headers',
    'Access-Control-Allow-Methods',
    'Access-Control-Allow-Origin',
    'Access-Control-Allow-Private-Network',
    'Access-Control-Expose-Headers',
    'Access-Control-Max-Age',
    'Activate-Storage-Access',
    'Alt-Svc',
    'Attribution-Reporting-Register-Source',
    'Audit-Id',
    'Clear-Site-Data',
    'Critical-CH',
    'Delegate-CH',
    'Expect-CT',
    'IdP-SignIn-Status',
    'NEL',
    'Observe-Browsing-Topics',
    'Origin-Agent-Cluster',
    'Origin-Trial',
    'P3P',
    'Proxy-Authenticate',
    'Public-Key-Pins',
    'Public-Key-Pins-Report-Only',
    'Report-To',
    'Reporting-Endpoints',
    'Sec-Session-Challenge',
    'Sec-Session-Registration',
    'Secure-Session-Challenge',
    'Secure-Session-Registration',
    'Service-Worker-Allowed',
    'Set-Login',
    'Shared-Storage-Write',
    'Speculation-Rules',
    'Strict-Transport-Security',
    'Supports-Loading-Mode',
    'Timing-Allow-Origin',
    'Use-As-Dictionary',
    'WWW-Authenticate',
    'X-Permitted-Cross-Domain-Policies',
  ]
  const kept = [
    'Accept-Ranges',
    'Content-Disposition',
    'Content-Language',
    'Cross-Origin-Embedder-Policy',
    'Cross-Origin-Opener-Policy',
    'Cross-Origin-Resource-Policy',
    'Document-Policy',
    'ETag',
    'Expires',
    'Last-Modified',
    'Link',
    'Permissions-Policy',
    'Referrer-Policy',
    'Refresh',
    'Retry-After',
    'Server',
    'Server-Timing',
    'SourceMap',
    'Vary',
    'X-Anything',
    'X-Frame-Options',
    'X-XSS-Protection',
  ]

  test('[SEC-R102] an add-on does not speak for the whole origin', async () => {
    const [path = ''] = formsOf('services', 'kube-system')
    const sent = Object.fromEntries([...dropped, ...kept].map((name) => [name, 'mark']))
    reply = { ...html, headers: { ...html.headers, ...sent } }
    const { headers } = await admin.get(path)
    const passed = (names: readonly string[]) =>
      names.filter((name) => String(headers[name.toLowerCase()] ?? '').includes('mark'))
    expect(passed(dropped)).toEqual([])
    expect(passed(kept)).toEqual(kept)
  })

  test('[SEC-R102] cookies stay below the path of their add-on, and redirects too', async () => {
    const [path = ''] = formsOf('services', 'kube-system')
    const cookies = ['a=1; Path=/; Domain=example', 'b=2', 'c=3; Path=/../../x']
    reply = {
      status: 302,
      headers: { 'set-cookie': cookies, location: '/api/v1/secrets' },
      body: '',
    }
    const { headers } = await admin.get(path)
    const own = path.slice(0, -1)
    expect(headers['set-cookie']).toEqual([
      `a=1; Path=${own}/`,
      `b=2; Path=${own}/`,
      `c=3; Path=${own}/`,
    ])
    expect(headers.location).toBe(`${own}/api/v1/secrets`)
  })

  test.each([{ 'service-worker': 'script' }, { 'sec-fetch-dest': 'serviceworker' }])(
    '[SEC-R103] no service worker is registered by %j, in no namespace',
    async (headers) => {
      for (const [resource, namespace] of targets) {
        seen.length = 0
        const [path = ''] = formsOf(resource, namespace)
        expect((await admin.get(path, headers)).status).toBe(403)
        expect(seen).toEqual([])
      }
    },
  )
})

test.skipIf(outwardAddress === undefined).each([
  ['', { default: true, 'kube-system': true }],
  ['default', { default: false, 'kube-system': true }],
])(
  '[SEC-R105] with --addon-same-origin-namespace=%s the rest is sandboxed',
  async (value, expected) => {
    const lab = await ServiceProxyLab.open([`--addon-same-origin-namespace=${value}`])
    const admin = await lab.server.admin()
    const backend = await lab.backend((_request, response) => response.end(page))
    for (const [namespace, isSandboxed] of Object.entries(expected)) {
      const path = await lab.addon('web', backend, { namespace })
      const { headers } = await admin.get(`${path}/`)
      expect([namespace, policyOf(headers)]).toEqual([namespace, isSandboxed ? sandboxPolicy : ''])
    }
    await lab.close()
  },
)
