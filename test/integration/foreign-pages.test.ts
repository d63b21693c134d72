import type { ClientHttp2Session } from 'node:http2'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../../src/core/index.ts'
import { routesOf, watchedFeatures } from '../support/api-routes.ts'
import { type Answer, type Call, type HttpsCaller, requestOn } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const soon = (): AbortSignal => AbortSignal.timeout(10_000)
const configMaps = '/api/v1/namespaces/default/configmaps'
const allowed = 'https://front.example'
const { features, opened } = watchedFeatures()

let server: InProcessServer
let admin: HttpsCaller
let session: ClientHttp2Session

beforeAll(async () => {
  server = await startInProcess({ features, flags: ['--allowed-origin', allowed], http2: true })
  admin = await server.admin()
  session = await admin.http2()
})
afterAll(() => server.close())

type Headers = Readonly<Record<string, string>>
type Send = (
  path: string,
  call: { method: string; headers: Headers; body?: string },
) => Promise<Answer>

/** Without the content type that the caller would add. */
const overHttp1: Send = (path, { method, headers, body }) => {
  const outgoing = admin.send(path, {
    method,
    headers: { 'content-type': [], ...headers },
    ...(body !== undefined && { body }),
  } as Call)
  return new Promise((resolve, reject) => {
    outgoing.once('error', reject).once('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += String(chunk)
      })
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          object: JSON.parse(text || '{}'),
        }),
      )
    })
  })
}

const overHttp2: Send = (path, { method, headers, body }) =>
  requestOn(session, { ':path': path, ':method': method, ...headers }, body)

const configMap = (name: string, value = '1') =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { value } })

async function stored(): Promise<string> {
  const { items } = await server.serving.view.list(
    wellKnownKinds.configMap,
    { namespace: 'default' },
    soon(),
  )
  return JSON.stringify(items.filter(({ metadata }) => metadata.name.startsWith('row')))
}

/** What a page can make a browser send without asking, and what is no type at all. */
const simpleTypes = [
  undefined,
  '',
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
]

describe.each([
  ['HTTP/1.1', overHttp1],
  ['HTTP/2', overHttp2],
] as const)('over %s', (version, send) => {
  const name = `row-${version.replace(/\W/g, '').toLowerCase()}`

  const writes: [string, string, string][] = [
    ['POST', configMaps, configMap(`${name}-new`)],
    ['PUT', `${configMaps}/${name}`, configMap(name, '2')],
    ['PATCH', `${configMaps}/${name}`, '{"data":{"value":"3"}}'],
    ['DELETE', `${configMaps}/${name}`, '{"propagationPolicy":"Background"}'],
    ['DELETE', `${configMaps}?labelSelector=none`, '{"propagationPolicy":"Background"}'],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', '{"spec":{}}'],
    ['POST', '/api/v1/namespaces/default/serviceaccounts/default/token', '{"spec":{}}'],
  ]

  test('[SEC-R402] a body without a type, or of a form, writes nothing', async () => {
    await send(configMaps, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: configMap(name),
    })
    const before = await stored()
    for (const [method, path, body] of writes)
      for (const type of simpleTypes) {
        const headers = type === undefined ? {} : { 'content-type': type }
        const { status, object } = await send(path, { method, headers, body })
        expect([method, path, type, status, object['reason']]).toEqual([
          method,
          path,
          type,
          415,
          'UnsupportedMediaType',
        ])
      }
    expect(await stored()).toBe(before)
    // And the same with a type does.
    for (const [method, path, body] of writes.slice(0, 4)) {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const { status } = await send(path, { method, headers: { 'content-type': type }, body })
      expect([method, status]).toEqual([method, method === 'POST' ? 201 : 200])
    }
  })

  test('what has no body needs no type, and neither has kubectl with --raw', async () => {
    const raw = { 'kubectl-command': 'kubectl create' }
    const made = await send(configMaps, {
      method: 'POST',
      headers: raw,
      body: configMap(`${name}-raw`),
    })
    const gone = await send(`${configMaps}/${name}-raw`, { method: 'DELETE', headers: {} })
    expect([made.status, gone.status]).toEqual([201, 200])
  })

  const pages: [string, Headers, number][] = [
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, 403],
    [
      'another port of this machine',
      { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:3000' },
      403,
    ],
    ['another port, without fetch metadata', { origin: 'http://localhost:8001' }, 403],
    ['an opaque origin', { origin: 'null' }, 403],
    [
      'an opaque origin, as browsers report it',
      { 'sec-fetch-site': 'cross-site', origin: 'null' },
      403,
    ],
    ['an allowed origin', { 'sec-fetch-site': 'cross-site', origin: allowed }, 201],
    [
      'the same origin behind kubectl proxy',
      { 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1:8001' },
      201,
    ],
  ]
  test.each(pages)('[SEC-R401] a page of %s creates with %j: %i', async (what, page, code) => {
    const made = `row-${version.length}-${what.replace(/\W/g, '')}`
    const headers = { 'content-type': 'application/json', ...page }
    const { status } = await send(configMaps, {
      method: 'POST',
      headers,
      body: configMap(made.toLowerCase()),
    })
    expect(status).toBe(code)
    expect((await stored()).includes(`"${made.toLowerCase()}"`)).toBe(code === 201)
  })
})

test('[SEC-R104] no response of the API itself is a page, and none is sniffed: every route', async () => {
  const { paths } = JSON.parse((await admin.get('/')).text)
  const markup = '?pretty=<script>&fieldSelector=<script>&timeoutSeconds=1'
  const headers = { accept: 'text/html, application/xhtml+xml, image/svg+xml, */*' }
  const wrong: string[] = []
  const routes = routesOf(opened, paths).filter(({ subresource }) => subresource !== 'proxy')
  for (const { root, path } of routes)
    for (const method of ['GET', 'POST'])
      for (const url of [
        root + path,
        encodeURI(`${root}${path}/<script>`),
        `${root}${path}${encodeURI(markup)}`,
      ]) {
        const answer = await admin.request(url, { method, headers })
        const type = answer.headers['content-type'] ?? 'none'
        const isData = /^(?:application\/(?!xhtml)[\w.+-]+|text\/plain)(?:;|$)/.test(type)
        if (!isData || answer.headers['x-content-type-options'] !== 'nosniff')
          wrong.push(`${method} ${url}: ${answer.status} ${type}`)
      }
  expect(routes.length).toBeGreaterThan(100)
  expect(wrong).toEqual([])
}, 120_000)
