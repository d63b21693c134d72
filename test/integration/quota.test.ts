import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

let server: InProcessServer
let editor: HttpsCaller
const maps = '/api/v1/namespaces/shop/configmaps'
const json = { 'content-type': 'application/merge-patch+json' }

beforeAll(async () => {
  server = await startInProcess({
    flags: ['--max-namespace-objects', '10', '--max-namespace-bytes', '20Ki'],
  })
  const admin = await server.admin()
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }
  await admin.request('/api/v1/namespaces', { method: 'POST', body: namespace })
  const rbac = 'rbac.authorization.k8s.io'
  for (const [path, kind] of [
    [`/apis/${rbac}/v1/namespaces/shop/rolebindings`, 'RoleBinding'],
    [`/apis/${rbac}/v1/clusterrolebindings`, 'ClusterRoleBinding'],
  ] as const)
    await admin.request(path, {
      method: 'POST',
      body: {
        apiVersion: `${rbac}/v1`,
        kind,
        metadata: { name: 'editor' },
        roleRef: {
          apiGroup: rbac,
          kind: 'ClusterRole',
          name: kind === 'RoleBinding' ? 'admin' : 'namespaces',
        },
        subjects: [{ apiGroup: rbac, kind: 'User', name: 'editor' }],
      },
    })
  await admin.request(`/apis/${rbac}/v1/clusterroles`, {
    method: 'POST',
    body: {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'namespaces' },
      rules: [
        {
          apiGroups: [''],
          resources: ['namespaces', 'namespaces/status', 'namespaces/finalize'],
          verbs: ['*'],
        },
      ],
    },
  })
  editor = server.as(await server.issue('editor'))
})
afterAll(() => server.close())

const configMap = (name: string, size = 10) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { x: 'x'.repeat(size) },
})

test('[SEC-R1101, SEC-R1109] an editor is warned, and then refused by every verb that adds', async () => {
  const large = await editor.request(maps, { method: 'POST', body: configMap('large', 30_000) })
  expect([large.status, large.text]).toEqual([403, expect.stringContaining('limited: bytes=20480')])
  const statuses: number[] = []
  let warning: unknown
  for (let index = 0; index < 12; index++) {
    const answer = await editor.request(maps, { method: 'POST', body: configMap(`m${index}`) })
    statuses.push(answer.status)
    warning ??= answer.headers['warning']
  }
  expect(statuses.filter((status) => status === 403).length).toBeGreaterThan(1)
  expect(String(warning)).toMatch(/namespace .*shop.* has 8 of 10 objects/)
  const patch = { data: { x: 'x'.repeat(25_000) } }
  const refused = await editor.request(`${maps}/m0`, {
    method: 'PATCH',
    headers: json,
    body: patch,
  })
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('exceeded quota')])
  const put = await editor.request(`${maps}/m0`, { method: 'PUT', body: configMap('m0', 25_000) })
  expect(put.status).toBe(403)
  expect((await editor.request(`${maps}/m0`, { method: 'DELETE' })).status).toBe(200)
  expect((await editor.request(maps, { method: 'POST', body: configMap('again') })).status).toBe(
    201,
  )
})

test.each(['', '/status', '/finalize'])(
  '[SEC-R1108] a user with every right to namespaces cannot raise their limit%s, an administrator can',
  async (subresource) => {
    const path = `/api/v1/namespaces/shop${subresource}`
    const annotations = { 'sallyport.dev/max-objects': '1000' }
    const body = { metadata: { annotations } }
    const present = (await editor.get('/api/v1/namespaces/shop')).object
    const whole = { ...present, metadata: { ...present.metadata, annotations } }
    const answers = await Promise.all([
      editor.request(path, { method: 'PATCH', headers: json, body }),
      editor.request(path, { method: 'PUT', body: whole }),
    ])
    expect(answers.filter(({ status }) => status < 300 && status >= 200)).toEqual([])
    const after = (await editor.get('/api/v1/namespaces/shop')).object
    expect(after.metadata.annotations?.['sallyport.dev/max-objects']).toBeUndefined()
  },
)

test('[SEC-R1107, SEC-R1110] an administrator raises the limit, and metrics show the store', async () => {
  const admin = await server.admin()
  const body = { metadata: { annotations: { 'sallyport.dev/max-objects': '100' } } }
  const raised = await admin.request('/api/v1/namespaces/shop', {
    method: 'PATCH',
    headers: json,
    body,
  })
  expect(raised.status).toBe(200)
  for (let index = 20; index < 32; index++)
    expect(
      (await editor.request(maps, { method: 'POST', body: configMap(`m${index}`) })).status,
    ).toBe(201)
  const { text } = await admin.get('/metrics')
  expect(text).toMatch(/^sallyport_store_objects [1-9]\d*$/m)
  expect(text).toMatch(/^sallyport_store_max_bytes 2147483648$/m)
  expect(text).toMatch(/^sallyport_quota_refusals_total\{limit="namespace"\} [1-9]/m)
})

test('[SEC-R1105] a store that is full refuses with 507 and still lets an administrator delete', async () => {
  const full = await startInProcess({ flags: ['--max-store-bytes', '200Ki'] })
  const admin = await full.admin()
  const path = '/api/v1/namespaces/default/configmaps'
  let last = await admin.request(path, { method: 'POST', body: configMap('m', 1_000) })
  for (let index = 0; last.status === 201 && index < 500; index++)
    last = await admin.request(path, { method: 'POST', body: configMap(`m${index}`, 1_000) })
  expect([last.status, last.text]).toEqual([507, expect.stringContaining('the store is full')])
  expect((await admin.request(`${path}/m`, { method: 'DELETE' })).status).toBe(200)
  await full.close()
})
