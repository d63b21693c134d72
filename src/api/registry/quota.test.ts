import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ApiError, type KubeObject, silentLogger, systemClock } from '../../core/index.ts'
import { openMemoryStore, type Store } from '../../storage/index.ts'
import { kindDefinitions } from '../kinds/index.ts'
import { createObject } from './create.ts'
import { deleteObject } from './delete.ts'
import { maxRequestsPerUser } from './limits.ts'
import { serverUser } from './local-cluster-view.ts'
import { noLimits, type QuotaLimits, QuotaStore } from './quota.ts'
import { quotaAdmission } from './quota-admission.ts'
import { AdmissionChain, type RegistryContext } from './registry.ts'
import { updateObject } from './update.ts'

const users = {
  editor: { username: 'editor', groups: ['system:authenticated'] },
  node: { username: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] },
  administrator: { username: 'admin', groups: ['system:masters'] },
  server: serverUser,
} as const
type User = keyof typeof users

function definitionOf(kind: string) {
  const found = kindDefinitions.find((definition) => definition.kind.kind === kind)
  if (!found) throw new Error(`no kind ${kind}`)
  return found
}

const { signal } = new AbortController()

class Registry {
  readonly context: RegistryContext
  readonly logged: object[] = []

  constructor(limits: Partial<QuotaLimits> = {}, store: Store = openMemoryStore()) {
    const log = { ...silentLogger, warn: (fields: object) => void this.logged.push(fields) }
    this.context = {
      store,
      quota: new QuotaStore(store, { ...noLimits, ...limits }, log),
      clock: systemClock,
      admissions: new AdmissionChain([quotaAdmission]),
      hooks: [],
      newUid: randomUUID,
    }
  }

  static async with(limits: Partial<QuotaLimits>, annotations: Record<string, string> = {}) {
    const registry = new Registry(limits)
    await registry.create('Namespace', { name: 'a', annotations }, { by: 'administrator' })
    await registry.create('Namespace', { name: 'b' }, { by: 'administrator' })
    return registry
  }

  create(
    kind: string,
    metadata: Partial<KubeObject['metadata']>,
    { by = 'editor' as User, rest = {}, dryRun = false } = {},
  ) {
    const { kind: known } = definitionOf(kind)
    const apiVersion = known.group ? `${known.group}/${known.version}` : known.version
    const draft = {
      kind,
      apiVersion,
      metadata: { name: '', ...metadata },
      ...structuredClone(rest),
    }
    const options = { user: users[by], dryRun, signal }
    return createObject(this.context, definitionOf(kind), draft, options)
  }

  map(name: string, size = 10, by: User = 'editor', namespace = 'a') {
    const rest = { data: { x: 'x'.repeat(size) } }
    return this.create('ConfigMap', { name, namespace }, { by, rest })
  }

  change(name: string, size: number, by: User = 'editor', dryRun = false) {
    return updateObject(this.context, definitionOf('ConfigMap'), {
      user: users[by],
      dryRun,
      signal,
      key: { namespace: 'a', name },
      mutate: (stored) => ({ ...stored, data: { x: 'x'.repeat(size) } }),
    })
  }

  delete(name: string) {
    const options = { user: users.editor, dryRun: false, signal }
    return deleteObject(this.context, definitionOf('ConfigMap'), {
      ...options,
      key: { namespace: 'a', name },
    })
  }

  used(namespace?: string) {
    return { ...this.context.quota.usage(namespace).used }
  }
}

/** The code of a write's refusal; 0 if it was made. */
const codeOf = (write: Promise<unknown>): Promise<unknown> =>
  write.then(
    () => 0,
    (error: unknown) => (error instanceof ApiError ? error.reason : error),
  )

const limited = (maxObjects: number, maxBytes = 0): Partial<QuotaLimits> => ({
  maxNamespaceObjects: maxObjects,
  maxNamespaceBytes: maxBytes,
})

describe('a namespace that is full', () => {
  const verbs: Readonly<Record<string, (registry: Registry, by: User) => Promise<unknown>>> = {
    create: (registry, by) => registry.map('new', 10, by),
    'create with a generated name': (registry, by) =>
      registry.create('ConfigMap', { generateName: 'g-', namespace: 'a' }, { by }),
    'create of another kind': (registry, by) =>
      registry.create('Secret', { name: 's', namespace: 'a' }, { by }),
    'growing update': (registry, by) => registry.change('full', 5_000, by),
  }
  const limits = {
    objects: limited(1),
    bytes: limited(0, 1_500),
  }
  const table = Object.keys(verbs).flatMap((verb) =>
    (Object.keys(limits) as (keyof typeof limits)[]).flatMap((limit) =>
      (Object.keys(users) as User[]).map((by) => {
        const grows = verb !== 'growing update' || limit === 'bytes'
        const isRefused = by !== 'server' && grows
        return [verb, limit, by, isRefused ? 'Forbidden' : 0] as const
      }),
    ),
  )
  test.each(table)('[SEC-R1101] %s, limit of %s, by %s: %s', async (verb, limit, by, outcome) => {
    const registry = await Registry.with(limits[limit])
    await registry.map('full', limit === 'bytes' ? 1_200 : 10)
    const before = registry.used('a')
    expect(await codeOf(verbs[verb]?.(registry, by) ?? Promise.resolve())).toBe(outcome)
    expect(outcome === 0 || JSON.stringify(registry.used('a')) === JSON.stringify(before)).toBe(
      true,
    )
    expect(await codeOf(registry.map('other', 10, by, 'b'))).toBe(0)
  })

  test('[SEC-R1101] says what is used, what is permitted, and what to do', async () => {
    const registry = await Registry.with(limited(1))
    await registry.map('full')
    await expect(registry.map('new')).rejects.toThrow(
      'configmaps "new" is forbidden: exceeded quota: namespace "a", requested: objects=1, used: objects=1, limited: objects=1; delete some, or have an administrator raise the annotation sallyport.dev/max-objects of the namespace',
    )
  })

  test('[SEC-R1102] lets objects be deleted and shrink, and takes new ones then', async () => {
    const registry = await Registry.with(limited(2, 3_000))
    await registry.map('one', 1_000)
    await registry.map('two', 1_000)
    const shrunk = new Registry(limited(1, 500), registry.context.store as Store)
    expect(await codeOf(shrunk.change('one', 900))).toBe(0)
    expect(await codeOf(shrunk.map('three'))).toBe('Forbidden')
    await shrunk.delete('one')
    await shrunk.delete('two')
    expect(await codeOf(shrunk.map('three', 1))).toBe(0)
  })

  test('[SEC-R1103] is not exceeded by writes at the same time, and a failed one gives back', async () => {
    const registry = await Registry.with(limited(10))
    const names = Array.from({ length: 40 }, (_, index) => `m${index % 20}`)
    const all = await Promise.all(names.map((name) => codeOf(registry.map(name))))
    expect(all.filter((code) => code === 0)).toHaveLength(10)
    expect(registry.used('a').objects).toBe(10)
    await registry.delete('m0')
    expect(await codeOf(registry.map('again'))).toBe(0)
  })

  test('[SEC-R1103] many creations of one name need the room of one', async () => {
    const registry = await Registry.with(limited(2))
    const codes = await Promise.all(Array.from({ length: 50 }, () => codeOf(registry.map('one'))))
    expect(codes.filter((code) => code === 0)).toHaveLength(1)
    expect(codes.filter((code) => code === 'AlreadyExists')).toHaveLength(49)
    await registry.map('two')
    expect(await codeOf(registry.map('one'))).toBe('AlreadyExists')
  })

  test('[SEC-R1101] has room for events, which are limited apart', async () => {
    const registry = await Registry.with(limited(2))
    for (const name of ['one', 'two']) await registry.map(name)
    const event = (name: string) => {
      const involvedObject = { kind: 'ConfigMap', namespace: 'a', name: 'one' }
      const rest = { involvedObject, reason: 'Test', message: 'x', type: 'Normal' }
      return codeOf(registry.create('Event', { name, namespace: 'a' }, { by: 'node', rest }))
    }
    expect([await event('e1'), await event('e2'), await event('e3')]).toEqual([0, 0, 'Forbidden'])
  })

  test('[SEC-R1111] has room for reservations of node names, which tokens cause without end', async () => {
    const registry = new Registry(limited(2))
    const namespace = 'kube-system'
    await registry.create('Namespace', { name: namespace }, { by: 'administrator' })
    const reserve = (name: string) =>
      registry.create('ConfigMap', { name, namespace }, { by: 'server' })
    for (let index = 0; index < 5; index++) await reserve(`sallyport-node-name-${index}`)
    const write = (name: string, by: User) =>
      codeOf(registry.create('ConfigMap', { name, namespace }, { by }))
    const codes = [
      await write('a', 'administrator'),
      await write('b', 'editor'),
      await write('c', 'editor'),
    ]
    expect(codes).toEqual([0, 0, 'Forbidden'])
    expect(registry.used(namespace).objects).toBe(2)
  })

  test('[SEC-R1103] a dry run counts nothing', async () => {
    const registry = await Registry.with(limited(1))
    for (let round = 0; round < 3; round++)
      await registry.create('ConfigMap', { name: 'x', namespace: 'a' }, { dryRun: true })
    expect(registry.used('a')).toEqual({ objects: 0, bytes: 0 })
    await registry.map('x')
    await registry.change('x', 100, 'editor', true)
    expect(registry.used('a').objects).toBe(1)
  })
})

test('[SEC-R1104] counts are the same after a restart, and follow deletions', async () => {
  const registry = await Registry.with({})
  for (let index = 0; index < 30; index++) await registry.map(`m${index}`, index)
  for (let index = 0; index < 10; index++) await registry.change(`m${index}`, 200 - index)
  for (let index = 20; index < 30; index++) await registry.delete(`m${index}`)
  const again = new Registry({}, registry.context.store as Store)
  for (const namespace of ['a', 'b', '', undefined])
    expect(again.used(namespace)).toEqual(registry.used(namespace))
  expect(registry.used('a').objects).toBe(20)
})

describe('the store when it is full', () => {
  test.each([
    ['editor', 'InsufficientStorage', 'InsufficientStorage'],
    ['node', 0, 'InsufficientStorage'],
    ['administrator', 0, 'InsufficientStorage'],
    ['server', 0, 'InsufficientStorage'],
  ] as const)('[SEC-R1105] %s: %s, and beyond the reserve %s', async (by, atLimit, beyond) => {
    const registry = await Registry.with({ maxStoreObjects: 20 })
    for (let index = 2; index < 20; index++) await registry.map(`m${index}`)
    expect(await codeOf(registry.map('first', 10, by))).toBe(atLimit)
    for (const name of ['x', 'y']) await codeOf(registry.map(name, 10, 'administrator', 'b'))
    expect(await codeOf(registry.map('last', 10, by, 'b'))).toBe(beyond)
    await registry.delete('m2')
  })

  test.each<[string, Partial<QuotaLimits>]>([
    ['the store', { maxStoreObjects: 5, maxStoreBytes: 2_000 }],
    ['kube-system', limited(2, 1_500)],
  ])('[SEC-R1154] administrators can revoke although %s is full', async (_place, limits) => {
    const registry = new Registry(limits)
    const namespace = 'kube-system'
    await registry.create('Namespace', { name: namespace }, { by: 'administrator' })
    const write = (name: string, by: User, users: string) =>
      codeOf(registry.create('ConfigMap', { name, namespace }, { by, rest: { data: { users } } }))
    let count = 0
    while ((await write(`m${count}`, 'administrator', 'x'.repeat(500))) === 0) count++
    expect(await write('more', 'administrator', 'x'.repeat(500))).not.toBe(0)
    expect(await write('sallyport-revoked', 'editor', 'x'.repeat(500))).not.toBe(0)
    expect(await write('sallyport-revoked', 'administrator', 'ann\n')).toBe(0)
    const more = updateObject(registry.context, definitionOf('ConfigMap'), {
      user: users.administrator,
      dryRun: false,
      signal,
      key: { namespace, name: 'sallyport-revoked' },
      mutate: (stored) => ({ ...stored, data: { users: 'ann\nbob\n'.repeat(500) } }),
    })
    expect(await codeOf(more)).toBe(0)
  })

  test('[SEC-R1105] in bytes: a clear status, and growing updates are refused too', async () => {
    const registry = await Registry.with({ maxStoreBytes: 4_000 })
    await registry.map('one', 2_500)
    await expect(registry.change('one', 3_900)).rejects.toThrow(
      /^the store is full: requested: bytes=1400, used: bytes=\d+, limited: bytes=4000; delete objects, or restart the server with a larger --max-store-bytes$/,
    )
    expect(await codeOf(registry.change('one', 100))).toBe(0)
  })
})

describe("the cluster's own objects", () => {
  test('[SEC-R1106] are limited for users, not for administrators', async () => {
    const registry = await Registry.with(limited(3))
    const create = (name: string, by: User) =>
      codeOf(registry.create('Namespace', { name }, { by }))
    expect(await create('third', 'editor')).toBe(0)
    expect(await create('fourth', 'editor')).toBe('Forbidden')
    expect(await create('fourth', 'administrator')).toBe(0)
  })

  test('[SEC-R1105, SEC-R1152] nodes leave a part of the reserve to administrators', async () => {
    const registry = await Registry.with({ maxStoreObjects: 20 })
    for (let index = 2; index < 20; index++) await registry.map(`m${index}`)
    expect(await codeOf(registry.map('n1', 10, 'node'))).toBe(0)
    expect(await codeOf(registry.map('n2', 10, 'node'))).toBe('InsufficientStorage')
    expect(await codeOf(registry.map('a1', 10, 'administrator'))).toBe(0)
  })
})

describe('certificate signing requests', () => {
  const { kind } = definitionOf('CertificateSigningRequest')
  const path = 'certificates.k8s.io/certificatesigningrequests'
  const holder = (id: string) => ({
    username: `system:bootstrap:${id}`,
    groups: ['system:bootstrappers'],
  })
  const token = holder('abcdef')
  const request = (
    { context }: Registry,
    user: { readonly username: string; readonly groups: readonly string[] },
    name: string,
    size = 0,
  ) => {
    const fields = `"name":"${name}"},"spec":{"username":"${user.username}"},"x":"${'x'.repeat(size)}"}`
    return context.quota.create(`${path}/${name}`, Buffer.from(fields), { user, kind, name })
  }

  test('[SEC-R1106] of one user have a limit of their own', async () => {
    const registry = await Registry.with({})
    const { quota, store } = registry.context
    for (let index = 0; index < maxRequestsPerUser.objects; index++)
      await request(registry, token, `r${index}`)
    expect(await codeOf(request(registry, token, 'last'))).toBe('Forbidden')
    expect(await codeOf(request(registry, holder('other1'), 'x'))).toBe(0)
    const first = store.get(`${path}/r0`)
    await quota.delete(first?.key ?? '', first?.revision ?? 0)
    expect(await codeOf(request(registry, token, 'last'))).toBe(0)
  })

  test('[SEC-R1150] of one user are limited in bytes, also for writes at the same time', async () => {
    const registry = await Registry.with({})
    const size = maxRequestsPerUser.bytes / 4
    const codes = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => codeOf(request(registry, token, name, size))),
    )
    expect(codes).toEqual([0, 0, 0, 'Forbidden'])
    await expect(request(registry, token, 'e', size)).rejects.toThrow(
      /exceeded quota: user "system:bootstrap:abcdef", requested: bytes=\d+, used: bytes=\d+, limited: bytes=16777216; requests are removed an hour/,
    )
  })

  test.each<[string, Partial<QuotaLimits>, number]>([
    ['objects', limited(30), 0],
    ['bytes', limited(0, 200_000), 20_000],
  ])(
    '[SEC-R1151] that fill their pool by %s keep out neither other kinds nor users with few of them',
    async (_amount, limits, size) => {
      const registry = await Registry.with(limits)
      let stored = 0
      for (const each of [size, size / 10, 0])
        while ((await codeOf(request(registry, token, `r${stored}`, each))) === 0) stored++
      expect(await codeOf(request(registry, holder('other1'), 'x'))).toBe(0)
      expect(await codeOf(request(registry, users.node, 'renewal'))).toBe(0)
      const others = [
        registry.create('Namespace', { name: 'c' }),
        registry.create('Node', { name: 'n1' }, { by: 'node' }),
      ]
      expect(await Promise.all(others.map(codeOf))).toEqual([0, 0])
      for (let id = 0; id < 50; id++)
        await codeOf(request(registry, holder(`few${id}`), `few${id}`, size))
      expect(await codeOf(request(registry, holder('last'), 'last', size))).toBe('Forbidden')
    },
  )
})

test('[SEC-R1153] what the server derives from Services and Pods of a namespace is limited too', async () => {
  const registry = await Registry.with(limited(2, 4_000))
  for (const name of ['one', 'two']) await registry.map(name)
  const derive = (name: string, size = 0) => {
    const rest = { addressType: 'IPv4', endpoints: [] }
    const metadata = { name, namespace: 'a', annotations: { x: 'x'.repeat(size) } }
    return codeOf(registry.create('EndpointSlice', metadata, { by: 'server', rest }))
  }
  expect(await derive('large', 4_000)).toBe('Forbidden')
  const codes: unknown[] = []
  for (let index = 0; index < 9; index++) codes.push(await derive(`slice-${index}`))
  expect(codes).toEqual([...Array(8).fill(0), 'Forbidden'])
  expect(registry.used('a').objects).toBe(2)
})

describe('the annotations of a namespace', () => {
  const objects = 'sallyport.dev/max-objects'
  const bytes = 'sallyport.dev/max-bytes'

  test.each([
    ['raise', limited(1), { [objects]: '3' }, 3],
    ['lower', limited(0), { [objects]: '2' }, 2],
    ['are in bytes too', limited(0), { [bytes]: '1Ki' }, 4],
    ['can close a namespace', limited(5), { [objects]: '0' }, 0],
  ])('[SEC-R1107] %s the limit', async (_name, limits, annotations, count) => {
    const registry = await Registry.with(limits, annotations)
    const codes: unknown[] = []
    for (let index = 0; index < 5; index++) codes.push(await codeOf(registry.map(`m${index}`, 100)))
    expect(codes.filter((code) => code === 0)).toHaveLength(count)
  })

  const kind = definitionOf('Namespace').kind
  const changes = [
    ['set', undefined, '5'],
    ['change', '5', '6'],
    ['remove', '5', undefined],
  ] as const
  const table = [objects, bytes].flatMap((annotation) =>
    changes.flatMap(([what, from, to]) =>
      ['', 'status', 'finalize'].flatMap((subresource) =>
        (Object.keys(users) as User[]).map(
          (by) => [by, what, annotation, subresource, { from, to }] as const,
        ),
      ),
    ),
  )
  test.each(table)(
    '[SEC-R1108] %s: %s %s by the subresource "%s"',
    (by, _what, annotation, subresource, { from, to }) => {
      const namespace = (value: string | undefined): KubeObject => ({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: {
          name: 'a',
          ...(value !== undefined && { annotations: { [annotation]: value } }),
        },
      })
      const attempt = {
        user: users[by],
        kind,
        namespace: '',
        name: 'a',
        dryRun: false,
        subresource,
      }
      const refused = (oldObject: KubeObject | undefined): boolean => {
        const operation = oldObject ? 'update' : 'create'
        const given = {
          ...attempt,
          operation,
          object: namespace(to),
          ...(oldObject && { oldObject }),
        }
        try {
          void quotaAdmission({ ...given, operation }, signal)
          return false
        } catch {
          return true
        }
      }
      const isAdministrator = by === 'administrator' || by === 'server'
      expect(refused(namespace(from))).toBe(!isAdministrator)
      expect(refused(undefined)).toBe(!isAdministrator && to !== undefined)
      expect(refused(namespace(to))).toBe(false)
    },
  )

  test.each(['', '-1', '1.5', '5 ', '5MB', 'x', '9'.repeat(16)])(
    '[SEC-R1108] the value %j is invalid',
    async (value) => {
      const registry = new Registry()
      const metadata = { name: 'n', annotations: { [bytes]: value } }
      expect(await codeOf(registry.create('Namespace', metadata, { by: 'administrator' }))).toBe(
        'Invalid',
      )
    },
  )
})

test('[SEC-R1109] from 80 % on there is a warning, one line in the log, and again after there was room', async () => {
  const registry = await Registry.with({ maxNamespaceObjects: 10, maxStoreObjects: 1_000 })
  const { quota } = registry.context
  for (let index = 0; index < 7; index++) await registry.map(`m${index}`)
  expect([quota.warnings('a'), registry.logged]).toEqual([[], []])
  await registry.map('eighth')
  await registry.map('ninth')
  expect(quota.warnings('a')).toEqual([
    'namespace "a" has 9 of 10 objects: new objects are refused at the limit',
  ])
  expect(registry.logged).toEqual([{ place: 'namespace "a"', usage: 'has 8 of 10 objects' }])
  for (const name of ['eighth', 'ninth']) await registry.delete(name)
  await registry.map('eighth')
  expect(registry.logged).toHaveLength(2)
})
