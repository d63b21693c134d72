import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpsCaller } from '../support/https-caller.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const { signal } = new AbortController()
let server: InProcessServer
let admin: HttpsCaller
/** Parts of every private key and of the key that encrypts them. */
let secrets: string[]

beforeAll(async () => {
  server = await startInProcess({ flags: ['--addon-token-key', 'dedicated'] })
  admin = await server.admin()
  secrets = await secretsOf(server)
})
afterAll(() => server.close())

async function secretsOf({ sealed, dataDirectory }: InProcessServer): Promise<string[]> {
  const texts = await Promise.all(
    ['signing-keys', 'addon-token-key'].map(
      async (name) => (await sealed.get(name, signal))?.value,
    ),
  )
  const pems = texts.flatMap((text) => [
    ...String(text).matchAll(/PRIVATE KEY-----((?:\\n[A-Za-z0-9+/=]+)+)/g),
  ])
  const lines = pems.map(([, body = '']) => body.split('\\n')[1] ?? '')
  const storeKey = (await readFile(join(dataDirectory, 'pki', 'store-key'), 'utf8')).trim()
  expect(lines).toHaveLength(2)
  return [...lines, storeKey]
}

/** The text itself, and what is in it in base64. */
function leaksIn(text: string): string[] {
  const decoded = [...text.matchAll(/[A-Za-z0-9+/]{40,}={0,2}/g)].map(([part]) =>
    Buffer.from(part, 'base64').toString('latin1'),
  )
  const all = [text, ...decoded].join('\n')
  return secrets.filter((secret) => all.includes(secret))
}

interface ApiResource {
  readonly name: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
}

/** Every resource that discovery shows, with the path of its group. */
async function resources(): Promise<{ readonly root: string; readonly resource: ApiResource }[]> {
  const groups = (await admin.get('/apis')).object['groups'] as {
    versions: { groupVersion: string }[]
  }[]
  const roots = [
    '/api/v1',
    ...groups.flatMap(({ versions }) =>
      versions.map(({ groupVersion }) => `/apis/${groupVersion}`),
    ),
  ]
  const found = await Promise.all(
    roots.map(async (root) => {
      const list = (await admin.get(root)).object['resources'] as ApiResource[]
      return list.filter(({ name }) => !name.includes('/')).map((resource) => ({ root, resource }))
    }),
  )
  return found.flat()
}

const tricks = [
  'signing-keys',
  '..%2F..%2F..%2Fsallyport%2Fsealed%2Fsigning-keys',
  '%2Fsallyport%2Fsealed%2Fsigning-keys',
  '../../../sallyport/sealed/signing-keys',
  '%2e%2e/%2e%2e/sallyport/sealed/signing-keys',
  'sallyport-signing-keys',
  'sallyport-addon-token-key',
]
const continueTo = (start: string, rv = -1): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start })).toString('base64url')
const queries = [
  '',
  'limit=1',
  'resourceVersion=0',
  'resourceVersion=1&resourceVersionMatch=Exact',
  'watch=true&resourceVersion=1&timeoutSeconds=1',
  'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1',
  'fieldSelector=metadata.name%3Dsigning-keys',
  ...['/sallyport/sealed/', '../sallyport/sealed/', '\u0000', '/', '\uffff'].map(
    (start) => `limit=500&continue=${continueTo(start)}`,
  ),
]

test('a leak would be seen, plain or in base64', async () => {
  const text = String((await server.sealed.get('signing-keys', signal))?.value)
  expect(leaksIn(text)).toHaveLength(1)
  expect(leaksIn(Buffer.from(text).toString('base64'))).toHaveLength(1)
})

describe('the signing keys', () => {
  test('are behind no resource, name, namespace, selector, revision, watch or continue token [SEC-R901]', async () => {
    const all = await resources()
    expect(all.length).toBeGreaterThan(15)
    const paths = all.flatMap(({ root, resource: { name, namespaced } }) => {
      const lists = [
        `${root}/${name}`,
        ...(namespaced ? namespaces.map((each) => `${root}/namespaces/${each}/${name}`) : []),
      ]
      return [
        ...lists.flatMap((list) => queries.map((query) => `${list}?${query}`)),
        ...lists.flatMap((list) => tricks.map((trick) => `${list}/${trick}`)),
        `${root}/watch/${name}?resourceVersion=1&timeoutSeconds=1`,
      ]
    })
    let read = 0
    const queue = paths.values()
    await Promise.all(
      Array.from({ length: 40 }, async () => {
        for (const path of queue) {
          const { status, text } = await admin.get(path)
          if (status === 200) read++
          expect([path, leaksIn(text)]).toEqual([path, []])
        }
      }),
    )
    expect(read).toBeGreaterThan(200)
  }, 120_000)

  const namespaces = ['kube-system', 'default', '..', '%2F', '..%2F..%2Fsallyport', 'sallyport']

  test('are in no document, metric, log line, audit event or store command [SEC-R901]', async () => {
    const { paths } = (await admin.get('/')).object as unknown as { paths: string[] }
    for (const path of [...paths, '/metrics', '/issuer/v1/keys', '/addon/v1/jwks']) {
      const { text } = await admin.get(path)
      expect([path, leaksIn(text)]).toEqual([path, []])
    }
    await server.sealed.change('signing-keys', (present) => present, signal)
    const { dataDirectory } = server
    const backup = join(dataDirectory, 'a.backup')
    const at = ['--data-dir', dataDirectory, '--output', 'json']
    const commands = await Promise.all([
      runInProcess(['store', 'check', ...at]),
      runInProcess(['store', 'backup', backup, ...at]),
      runInProcess(['issuer', 'keys', ...at]),
    ])
    expect(commands.map(({ code }) => code)).toEqual([0, 0, 0])
    const printed = commands.map(({ stdout, stderr }) => stdout + stderr).join('')
    const audit = await readFile(join(dataDirectory, 'audit.log'), 'utf8')
    expect([printed, audit, server.log].map(leaksIn)).toEqual([[], [], []])
  })

  test('are encrypted in every file of the store and in a backup [SEC-R903]', async () => {
    const { dataDirectory } = server
    const backup = join(dataDirectory, 'b.backup')
    await runInProcess(['store', 'backup', backup, '--data-dir', dataDirectory])
    const store = join(dataDirectory, 'store')
    const files = [backup, ...(await readdir(store)).map((name) => join(store, name))]
    for (const file of files) {
      const bytes = await readFile(file)
      expect([file, secrets.filter((secret) => bytes.includes(secret))]).toEqual([file, []])
    }
    // The sealed values are there, so that a restored store goes on with the same keys.
    expect((await readFile(backup)).includes('/sallyport/sealed/signing-keys')).toBe(true)
  })

  test('are shown and rotated with a permission of their own only [SEC-R909]', async () => {
    const user = server.as(await server.issue('eve'))
    const rotate = ['/issuer/v1/keys/rotate', '/addon/v1/keys/rotate']
    const tried = async () => [
      (await user.get('/issuer/v1/keys')).status,
      ...(await Promise.all(rotate.map(async (path) => (await user.post(path, {})).status))),
    ]
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const grant = async (name: string, rule: object) => {
      await admin.post(`${rbac}/clusterroles`, { metadata: { name }, rules: [rule] })
      await admin.post(`${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'eve' }],
      })
    }
    await grant('secrets', { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['*'] })
    expect(await tried()).toEqual([403, 403, 403])
    await grant('keys', { nonResourceURLs: ['/issuer/v1/keys'], verbs: ['get'] })
    await expect.poll(tried).toEqual([200, 403, 403])
    await grant('rotate', { nonResourceURLs: ['/issuer/v1/keys/rotate'], verbs: ['post'] })
    await expect
      .poll(async () => (await user.post('/issuer/v1/keys/rotate', { now: 1 })).status)
      .toBe(400)
    expect((await user.get('/issuer/v1/keys')).object['keys']).toHaveLength(1)
    expect((await user.post('/issuer/v1/keys/rotate', {})).object['keys']).toHaveLength(2)
  })

  test.each([
    '{"now":"yes"}',
    '{"showMs":-1}',
    '{"showMs":1,"now":true}',
    '{"other":1}',
    '[]',
    'x',
    '{"showMs":1e400}',
  ])('are not rotated by %s [SEC-R909]', async (body) => {
    const before = (await admin.get('/issuer/v1/keys')).text
    const answer = await admin.request('/issuer/v1/keys/rotate', { method: 'POST', body })
    expect(answer.object).toMatchObject({ kind: 'Status', code: 400 })
    expect((await admin.get('/issuer/v1/keys')).text).toBe(before)
  })
})

test('a Secret under the old names changes no key, while the server runs and after a restart [SEC-R907]', async () => {
  const first = await startInProcess({
    dataDirectory: join(server.dataDirectory, 'second'),
    flags: ['--addon-token-key', 'dedicated'],
  })
  const caller = await first.admin()
  const documents = async (from: HttpsCaller) =>
    (await Promise.all(['/openid/v1/jwks', '/addon/v1/jwks'].map((path) => from.get(path)))).map(
      ({ text }) => text,
    )
  const before = await documents(caller)
  const ring = (await server.sealed.get('signing-keys', signal))?.value.toString('base64')
  const planted = [
    ['sallyport-signing-keys', 'sallyport.dev/signing-keys', { 'keys.json': ring }],
    ['sallyport-addon-token-key', 'sallyport.dev/addon-token-key', { 'key.pem': ring }],
  ] as const
  for (const [name, type, data] of planted) {
    const made = await caller.post('/api/v1/namespaces/kube-system/secrets', {
      metadata: { name },
      type,
      data,
    })
    expect(made.status).toBe(201)
  }
  expect(await documents(caller)).toEqual(before)
  await first.halt()
  const second = await startInProcess({
    dataDirectory: first.dataDirectory,
    flags: ['--addon-token-key', 'dedicated'],
  })
  const again = await second.admin()
  expect(await documents(again)).toEqual(before)
  expect(
    (await again.get('/api/v1/namespaces/kube-system/secrets/sallyport-signing-keys')).status,
  ).toBe(404)
  expect(second.log).toContain('Secret deleted: signing keys are in the sealed store')
  await second.halt()
})

test('without pki/store-key the server does not start, and makes no new one [SEC-R905]', async () => {
  const dataDirectory = join(server.dataDirectory, 'third')
  await (await startInProcess({ dataDirectory })).halt()
  const path = join(dataDirectory, 'pki', 'store-key')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await rm(path)
  await expect(startInProcess({ dataDirectory })).rejects.toMatchObject({
    code: 'STORE_KEY_MISSING',
    message: expect.stringContaining(path),
  })
  await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
})
