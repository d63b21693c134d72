import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryUsage } from 'node:process'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isRecord, type KubeObject } from '../../src/core/index.ts'
import { type Answer, type HttpsCaller, requestOn } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'

/** Users by their tokens; each has the rights that a test or `beforeAll` gives them. */
const tokens = `
admin-token,admin,1,system:masters
owner-token,owner,2
viewer-token,viewer,3
reader-token,reader,4
updater-token,updater,5
leaver-token,leaver,6
`

let folder: string
let server: InProcessServer
let admin: HttpsCaller
const as = (name: string): HttpsCaller => server.as({ token: `${name}-token` })

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** Gives a user rules, or a ClusterRole, in one namespace. */
async function grant(user: string, namespace: string, rights: readonly Rule[] | string) {
  const path = `${rbac}/namespaces/${namespace}`
  const isRole = typeof rights !== 'string'
  const apiGroup = 'rbac.authorization.k8s.io'
  const roleRef = isRole
    ? { apiGroup, kind: 'Role', name: user }
    : { apiGroup, kind: 'ClusterRole', name: rights }
  if (isRole) await made(admin.post(`${path}/roles`, { metadata: { name: user }, rules: rights }))
  const subjects = [{ kind: 'User', name: user }]
  await made(admin.post(`${path}/rolebindings`, { metadata: { name: user }, roleRef, subjects }))
}

async function made(answer: Promise<Answer>): Promise<void> {
  const { status, text } = await answer
  if (status !== 201) throw new Error(`${status} ${text}`)
}

const names = ({ text }: Answer): string[] =>
  [...text.matchAll(/"metadata":\{[^{}]*?"name":"([^"]+)"/g)].map(([, name = '']) => name)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-attacks-'))
  await writeFile(join(folder, 'tokens.csv'), tokens.trim())
  server = await startInProcess({
    http2: true,
    flags: ['--token-auth-file', join(folder, 'tokens.csv')],
  })
  admin = as('admin')
  for (const name of ['mine', 'theirs']) {
    await made(admin.post('/api/v1/namespaces', { metadata: { name } }))
  }
  for (const name of ['one', 'other']) {
    const secret = { metadata: { name }, stringData: { key: `hidden-${name}` } }
    await made(admin.post('/api/v1/namespaces/theirs/secrets', secret))
  }
  await grant('owner', 'mine', 'cluster-admin')
  await grant('viewer', 'mine', 'view')
  await grant('reader', 'theirs', [
    { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'], resourceNames: ['one'] },
  ])
  await grant('updater', 'theirs', [
    {
      apiGroups: ['', 'coordination.k8s.io', 'rbac.authorization.k8s.io'],
      resources: ['services', 'endpoints', 'events', 'leases', 'roles', 'rolebindings'],
      verbs: ['update'],
    },
  ])
})

afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

describe('rights inside of a namespace reach nothing outside of it [GND-R80]', () => {
  test.each([
    ['GET', '/api/v1/namespaces/mine/namespaces', undefined],
    ['GET', '/api/v1/namespaces/mine/namespaces?watch=1', undefined],
    ['GET', '/api/v1/watch/namespaces/mine/namespaces', undefined],
    ['GET', '/api/v1/namespaces/mine/namespaces/theirs', undefined],
    ['POST', '/api/v1/namespaces/mine/namespaces', { metadata: { name: 'new' } }],
    ['PUT', '/api/v1/namespaces/mine/namespaces/theirs', { metadata: { name: 'theirs' } }],
    ['DELETE', '/api/v1/namespaces/mine/namespaces/theirs', undefined],
    ['GET', '/api/v1/namespaces/mine/nodes', undefined],
    ['GET', `${rbac}/namespaces/mine/clusterroles`, undefined],
    ['POST', '/apis/authentication.k8s.io/v1/namespaces/mine/tokenreviews', { spec: {} }],
  ])('%s %s is not there', async (method, path, body) => {
    const answer = await as('owner').request(path, { method, ...(body && { body }) })
    expect(answer.status).toBe(404)
  })

  test('a watch of the own namespace shows no other', async () => {
    const path =
      '/api/v1/watch/namespaces/mine?timeoutSeconds=1&fieldSelector=metadata.name!%3Dnothing'
    expect(names(await as('viewer').get(path))).toEqual(['mine'])
  })
})

describe('who may read one object by its name reads no other', () => {
  test.each([
    '/api/v1/watch/namespaces/theirs/secrets/one?timeoutSeconds=1',
    '/api/v1/watch/namespaces/theirs/secrets/one?timeoutSeconds=1&fieldSelector=metadata.namespace%3Dtheirs',
    '/api/v1/watch/namespaces/theirs/secrets/one?timeoutSeconds=1&fieldSelector=metadata.name!%3Dnothing',
    '/api/v1/namespaces/theirs/secrets?fieldSelector=metadata.name%3Done',
    '/api/v1/namespaces/theirs/secrets?fieldSelector=type!%3Dx,metadata.name%3D%3Done',
    '/api/v1/namespaces/theirs/secrets?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1',
  ])('%s shows that one', async (path) => {
    const answer = await as('reader').get(path)
    expect([answer.status, names(answer)]).toEqual([200, ['one']])
  })

  test.each([
    '/api/v1/namespaces/theirs/secrets',
    '/api/v1/namespaces/theirs/secrets?fieldSelector=metadata.name!%3Done',
    '/api/v1/namespaces/theirs/secrets?fieldSelector=metadata.name%3Done%5C,x',
    '/api/v1/namespaces/theirs/secrets?fieldSelector=metadata.name%3Dother&fieldSelector=metadata.name%3Done',
    '/api/v1/watch/namespaces/theirs/secrets?fieldSelector=metadata.name%3Done',
    '/api/v1/watch/namespaces/theirs/secrets/other',
    '/api/v1/namespaces/theirs/secrets/one',
  ])('%s is refused', async (path) => {
    expect((await as('reader').get(path)).status).toBe(403)
  })
})

describe('who may only update creates nothing by a PUT', () => {
  test.each([
    ['/api/v1/namespaces/theirs/services/new', { spec: { ports: [{ port: 1 }] } }],
    ['/api/v1/namespaces/theirs/endpoints/new', {}],
    ['/api/v1/namespaces/theirs/events/new', { involvedObject: { namespace: 'theirs' } }],
    ['/apis/coordination.k8s.io/v1/namespaces/theirs/leases/new', {}],
    [`${rbac}/namespaces/theirs/roles/new`, { rules: [] }],
  ])('%s', async (path, object) => {
    const body = { ...object, metadata: { name: 'new' } }
    const answer = await as('updater').put(path, body)
    expect([answer.status, answer.text]).toEqual([
      403,
      expect.stringContaining('User \\"updater\\" cannot create resource'),
    ])
    expect((await admin.get(path)).status).toBe(404)
    expect((await admin.put(path, body)).status).toBe(201)
  })
})

describe('the server is no confused deputy', () => {
  test('a Pod cannot claim a loopback address, and so sends no traffic there', async () => {
    const owner = as('owner')
    const inMine = '/api/v1/namespaces/mine'
    const patch = { 'content-type': 'application/merge-patch+json' }
    await made(
      owner.post(`${inMine}/services`, {
        metadata: { name: 'inward' },
        spec: { selector: { app: 'inward' }, ports: [{ port: 80 }] },
      }),
    )
    for (const [name, ip, code] of [
      ['loopback', '127.0.0.1', 403],
      ['other', '10.1.2.3', 200],
    ]) {
      await made(
        owner.post(`${inMine}/pods`, {
          metadata: { name, labels: { app: 'inward' } },
          spec: { containers: [{ name: 'a', image: 'b' }] },
        }),
      )
      const conditions = [{ type: 'Ready', status: 'True' }]
      const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions } }
      const call = { method: 'PATCH', headers: patch, body }
      expect((await owner.request(`${inMine}/pods/${name}/status`, call)).status).toBe(code)
    }
    const watch = await owner.watch(
      '/apis/discovery.k8s.io/v1/namespaces/mine/endpointslices?watch=1',
    )
    const seen = await watch.until(({ object }) => JSON.stringify(object).includes('10.1.2.3'))
    watch.close()
    expect(JSON.stringify(seen)).not.toContain('127.0.0.1')
  })

  test('a revoked user is not vouched for by a TokenReview', async () => {
    const review = () =>
      admin.post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'leaver-token' } })
    const before = await review()
    expect(before.object['status']).toMatchObject({
      authenticated: true,
      user: { username: 'leaver', groups: ['system:authenticated'] },
    })
    await made(
      admin.post('/api/v1/namespaces/kube-system/configmaps', {
        metadata: { name: 'sallyport-revoked' },
        data: { users: 'leaver' },
      }),
    )
    const after = await review()
    expect(after.object['status']).toMatchObject({
      user: {},
      error: expect.stringContaining('revoked'),
    })
  })

  test('a warning about whatever a client sent keeps nobody from an answer', async () => {
    const object = JSON.parse('{"metadata":{"name":"odd"},"日\\u010a\\u010d\\r\\nx: y":1}')
    const answer = await as('owner').post('/api/v1/namespaces/mine/configmaps', object)
    expect([answer.status, answer.headers['x']]).toEqual([201, undefined])
    expect(answer.headers.warning).toContain('unknown field')
  })
})

describe('a stranger harms nobody by a single request', () => {
  test('a method that every object inherits is no verb and no label', async () => {
    const session = await server.as({}).http2()
    for (const path of ['/healthz', '/api/v1/namespaces']) {
      const answer = await requestOn(session, { ':method': 'constructor', ':path': path })
      expect(answer.status).toBeGreaterThanOrEqual(400)
    }
    const metrics = await admin.get('/metrics')
    expect(metrics.status).toBe(200)
    expect(metrics.text).toContain('apiserver_request_total{verb="other"')
  })
})

describe('large answers cost little', () => {
  const objects = 12
  const readers = 40
  const path = '/api/v1/namespaces/mine/configmaps'
  const table = 'application/json;as=Table;g=meta.k8s.io;v=v1'

  beforeAll(async () => {
    const data = { text: 'x'.repeat(900_000) }
    for (let index = 0; index < objects; index++) {
      await made(as('owner').post(path, { metadata: { name: `large-${index}` }, data }))
    }
  })

  test.each([
    ['a list', path, {}],
    ['a compressed list', path, { 'accept-encoding': 'gzip' }],
    ['a table of whole objects', `${path}?includeObject=Object`, { accept: table }],
    ['YAML', path, { accept: 'application/yaml' }],
    ['a watch', `${path}?watch=1`, {}],
  ])('to those who do not read %s', async (_what, url, headers) => {
    const before = memoryUsage()
    const unread = Array.from({ length: readers }, () => as('owner').send(url, { headers }))
    await Promise.all(unread.map((request) => once(request, 'response')))
    const after = memoryUsage()
    for (const request of unread) request.destroy()
    // Whole answers would be more than twice as much.
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(readers * 4 * 2 ** 20)
  })

  test.each([
    ['plain', {}],
    ['compressed', { 'accept-encoding': 'gzip' }],
  ])('and are complete, %s', async (_what, headers) => {
    const request = as('owner').send(path, { headers })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const bytes = await buffer(response)
    const isZipped = response.headers['content-encoding'] === 'gzip'
    const list = JSON.parse((isZipped ? gunzipSync(bytes) : bytes).toString())
    expect(
      list.items.filter(({ data }: KubeObject) => isRecord(data) && data['text']),
    ).toHaveLength(objects)
  })
})

describe('a server starts again whatever was done to its own objects', () => {
  const services = '/api/v1/namespaces/default/services'
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

  test('its Service taken away, its slice replaced, its policy held fast', async () => {
    const dataDirectory = join(folder, 'again')
    const first = await startInProcess({ dataDirectory })
    const admin = await first.admin()
    const spec = { clusterIP: '10.96.0.1', ports: [{ port: 443 }] }
    expect((await admin.delete(`${services}/kubernetes`)).status).toBe(200)
    const thief = await admin.post(services, { metadata: { name: 'thief' }, spec })
    expect([thief.status, thief.text]).toEqual([422, expect.stringContaining('already allocated')])
    expect((await admin.delete(`${slices}/kubernetes`)).status).toBe(200)
    await made(
      admin.post(slices, { metadata: { name: 'kubernetes' }, addressType: 'IPv6', endpoints: [] }),
    )
    const bindings = `${rbac}/namespaces/kube-public/rolebindings`
    const name = 'system:controller:bootstrap-signer'
    expect((await admin.delete(`${bindings}/${name}`)).status).toBe(200)
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }
    await made(
      admin.post(bindings, { metadata: { name, finalizers: ['example.com/held'] }, roleRef }),
    )
    await first.halt()

    const second = await startInProcess({ dataDirectory })
    const again = await second.admin()
    const service = await again.get(`${services}/kubernetes`)
    const slice = await again.get(`${slices}/kubernetes`)
    await second.halt()
    expect(service.object['spec']).toMatchObject({ clusterIP: '10.96.0.1' })
    expect(slice.object['addressType']).toBe('IPv4')
    expect(second.log).toContain('default policy is not in force')
  })
})
