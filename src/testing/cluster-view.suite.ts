import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ClusterView,
  type Kind,
  type KubeObject,
  type Query,
  type ReviewKind,
  wellKnown,
} from '../core/index.ts'

/** A cluster to put through the suite. */
export interface ClusterViewFixture {
  readonly view: ClusterView
  close(): Promise<void>
}

/** What only some clusters can show. */
interface ClusterAbilities {
  /** Gives a version that history no longer reaches back to. */
  readonly expiredVersion?: (view: ClusterView) => Promise<string>
  /** A token that the cluster accepts, and whose it is. */
  readonly token?: () => { readonly value: string; readonly username: string }
  /** True when the cluster issues service account tokens. */
  readonly issuesTokens?: boolean
}

const core = { group: '', version: 'v1' } as const
const configMaps: Kind = { ...core, kind: 'ConfigMap', resource: 'configmaps', namespaced: true }
const secrets: Kind = { ...core, kind: 'Secret', resource: 'secrets', namespaced: true }
const namespaces: Kind = { ...core, kind: 'Namespace', resource: 'namespaces', namespaced: false }
const nodes: Kind = { ...core, kind: 'Node', resource: 'nodes', namespaced: false }
const leases: Kind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  resource: 'leases',
  namespaced: true,
}
const notServed: Kind = {
  group: 'nowhere.example.com',
  version: 'v1',
  kind: 'Unicorn',
  resource: 'unicorns',
  namespaced: true,
}

const { signal } = new AbortController()
const unique = (stem: string) => `${stem}-${randomUUID().slice(0, 8)}`

type Labels = Record<string, string>

const named = (namespace: string | undefined, name: string, labels?: Labels) => ({
  name,
  ...(namespace !== undefined && { namespace }),
  ...(labels && { labels }),
})

const configMap = (
  namespace: string,
  name: string,
  data: Labels = {},
  labels?: Labels,
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: named(namespace, name, labels),
  data,
})

const secret = (namespace: string, name: string, type: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: named(namespace, name),
  type,
})

const node = (name: string, fields: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: named(undefined, name),
  ...fields,
})

/** The first `count` changes that a watch tells. */
async function changesOf(
  view: ClusterView,
  kind: Kind,
  query: Query & { readonly from: string },
  count: number,
): Promise<{ type: string; object: KubeObject }[]> {
  const stop = new AbortController()
  const seen: { type: string; object: KubeObject }[] = []
  for await (const event of view.watch(kind, query, stop.signal)) {
    if (event.type === 'BOOKMARK') continue
    seen.push(event)
    if (seen.length === count) stop.abort()
  }
  return seen
}

const brief = (changes: readonly { type: string; object: KubeObject }[]): string[] =>
  changes.map(({ type, object }) => `${type} ${object.metadata.name}`)

/** Registers a test for fixtures with an ability only: to be without it is no test left out. */
const testOf = (ability: unknown): ((title: string, run: () => Promise<void>) => void) =>
  ability ? test : () => {}

/** Everything that `ClusterView` promises, whichever cluster is behind it. */
export function describeClusterView(
  name: string,
  open: () => Promise<ClusterViewFixture>,
  abilities: ClusterAbilities = {},
): void {
  describe(`ClusterView on ${name}`, () => {
    let fixture: ClusterViewFixture
    let view: ClusterView
    let namespace: string

    beforeAll(async () => {
      fixture = await open()
      view = fixture.view
      namespace = unique('contract')
      await create({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: namespace },
      })
    })
    afterAll(() => fixture?.close())

    const create = (object: KubeObject) => view.write('create', object, {}, signal)
    const update = (object: KubeObject, options = {}) =>
      view.write('update', object, options, signal)
    const remove = (object: KubeObject, options = {}) =>
      view.write('delete', object, options, signal)
    const get = (kind: Kind, key: { namespace?: string; name: string }) =>
      view.get(kind, key, signal)
    const namesIn = async (kind: Kind, query: Query) =>
      (await view.list(kind, query, signal)).items.map(({ metadata }) => metadata.name)
    const now = async () => (await view.list(configMaps, { namespace }, signal)).resourceVersion

    describe('objects', () => {
      test('an object that is not there is undefined [GND-R85]', async () => {
        expect(await get(configMaps, { namespace, name: 'absent' })).toBeUndefined()
        expect(await get(nodes, { name: unique('absent') })).toBeUndefined()
        expect(await get(configMaps, { namespace: 'absent', name: 'absent' })).toBeUndefined()
      })

      test('a created object comes back whole and the same by get and list [GND-R85]', async () => {
        const name = unique('made')
        const made = await create(configMap(namespace, name, { k: 'v' }, { app: name }))
        expect(made).toMatchObject({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: {
            name,
            namespace,
            labels: { app: name },
            uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
            creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
            resourceVersion: expect.stringMatching(/^\d+$/),
          },
          data: { k: 'v' },
        })
        expect(await get(configMaps, { namespace, name })).toEqual(made)
        const listed = await view.list(configMaps, { labelSelector: `app=${name}` }, signal)
        expect(listed.items).toEqual([made])
        expect(Number(listed.resourceVersion)).toBeGreaterThanOrEqual(
          Number(made.metadata.resourceVersion),
        )
      })

      test('an update replaces the object and moves its version [GND-R85]', async () => {
        const name = unique('changed')
        const made = await create(configMap(namespace, name, { a: '1', b: '2' }))
        const changed = await update({ ...made, data: { a: '3' } })
        expect(changed).toMatchObject({ metadata: { uid: made.metadata.uid }, data: { a: '3' } })
        expect(changed['data']).toEqual({ a: '3' })
        expect(changed.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion)
        expect(await get(configMaps, { namespace, name })).toEqual(changed)
      })

      test('an update that names no version replaces whatever is there [GND-R85]', async () => {
        const name = unique('blind')
        await create(configMap(namespace, name, { a: '1' }))
        await update(configMap(namespace, name, { a: '2' }))
        expect(await get(configMaps, { namespace, name })).toMatchObject({ data: { a: '2' } })
      })

      test('the arguments of a write are left as they were [GND-R85]', async () => {
        const draft = configMap(namespace, unique('mine'), { a: '1' })
        const before = structuredClone(draft)
        const made = await create(draft)
        await update(draft, { resourceVersion: made.metadata.resourceVersion })
        expect(draft).toEqual(before)
      })

      test('a deleted object comes back as it was last, and is gone [GND-R85]', async () => {
        const name = unique('deleted')
        const made = await create(configMap(namespace, name, { k: 'v' }))
        const target = { apiVersion: 'v1', kind: 'ConfigMap', metadata: named(namespace, name) }
        // Its version may be the one that it had, or that of its deletion.
        const { resourceVersion: _version, ...metadata } = made.metadata
        expect(await remove(target)).toMatchObject({ ...made, metadata })
        expect(await get(configMaps, { namespace, name })).toBeUndefined()
      })

      test('an object with finalizers stays, marked as deleted, until they are gone [GND-R85]', async () => {
        const name = unique('held')
        const draft = configMap(namespace, name)
        draft.metadata.finalizers = ['example.com/hold']
        await create(draft)
        const held = await remove(draft)
        expect(held.metadata.deletionTimestamp).toBeDefined()
        expect(await get(configMaps, { namespace, name })).toEqual(held)
        const { finalizers: _, ...metadata } = held.metadata
        await update({ ...held, metadata })
        expect(await get(configMaps, { namespace, name })).toBeUndefined()
      })

      test('generateName makes names that are free [GND-R85]', async () => {
        const draft = configMap(namespace, '')
        draft.metadata.generateName = 'generated-'
        const made = await Promise.all([create(draft), create(draft), create(draft)])
        const names = made.map(({ metadata }) => metadata.name)
        for (const each of names) expect(each).toMatch(/^generated-[a-z0-9]{5}$/)
        expect(new Set(names).size).toBe(3)
      })

      test('kinds without namespaces and kinds of other groups work the same [GND-R85]', async () => {
        const name = unique('node')
        const made = await create(node(name, { spec: { podCIDR: '10.9.0.0/24' } }))
        expect(made.metadata.namespace).toBeUndefined()
        expect(await get(nodes, { name })).toEqual(made)
        expect(await namesIn(nodes, { fieldSelector: `metadata.name=${name}` })).toEqual([name])
        await remove(node(name))
        const lease = await create({
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: named(namespace, name),
          spec: { holderIdentity: 'me' },
        })
        expect(await get(leases, { namespace, name })).toEqual(lease)
      })

      test('a list without a namespace has the objects of all namespaces [GND-R85]', async () => {
        const app = unique('everywhere')
        const other = unique('other')
        await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: other } })
        await create(configMap(namespace, 'here', {}, { app }))
        await create(configMap(other, 'there', {}, { app }))
        expect((await namesIn(configMaps, { labelSelector: `app=${app}` })).toSorted()).toEqual([
          'here',
          'there',
        ])
        expect(
          await namesIn(configMaps, { namespace: other, labelSelector: `app=${app}` }),
        ).toEqual(['there'])
      })

      test('a list is whole and in order of names, however long [GND-R85]', async () => {
        const app = unique('many')
        const names = Array.from({ length: 1_203 }, (_, i) => `many-${String(i).padStart(4, '0')}`)
        for (let i = 0; i < names.length; i += 25)
          await Promise.all(
            names.slice(i, i + 25).map((each) => create(configMap(namespace, each, {}, { app }))),
          )
        expect(await namesIn(configMaps, { namespace, labelSelector: `app=${app}` })).toEqual(names)
      })
    })

    describe('preconditions', () => {
      const wrongUid = '00000000-0000-4000-8000-000000000000'

      test.each([
        ['update', 'resourceVersion'],
        ['update', 'uid'],
        ['delete', 'resourceVersion'],
        ['delete', 'uid'],
      ] as const)(
        '%s with a stale %s is a Conflict and changes nothing [GND-R85]',
        async (op, field) => {
          const name = unique('guarded')
          const first = await create(configMap(namespace, name, { n: '1' }))
          const second = await update(configMap(namespace, name, { n: '2' }))
          const stale = {
            resourceVersion: { resourceVersion: String(first.metadata.resourceVersion) },
            uid: { uid: wrongUid },
          }[field]
          const attempt = view.write(op, configMap(namespace, name, { n: '3' }), stale, signal)
          await expect(attempt).rejects.toMatchObject({ reason: 'Conflict', details: { name } })
          expect(await get(configMaps, { namespace, name })).toEqual(second)
        },
      )

      test('writes whose preconditions hold happen [GND-R85]', async () => {
        const name = unique('guarded')
        const first = await create(configMap(namespace, name, { n: '1' }))
        const { uid, resourceVersion } = first.metadata
        const second = await update(configMap(namespace, name, { n: '2' }), {
          uid,
          resourceVersion,
        })
        expect(second).toMatchObject({ data: { n: '2' } })
        const version = second.metadata.resourceVersion
        await remove(configMap(namespace, name), { uid, resourceVersion: version })
        expect(await get(configMaps, { namespace, name })).toBeUndefined()
      })

      test("the version in an update's object is a precondition too [GND-R85]", async () => {
        const name = unique('guarded')
        const first = await create(configMap(namespace, name, { n: '1' }))
        await update({ ...first, data: { n: '2' } })
        await expect(update({ ...first, data: { n: '3' } })).rejects.toMatchObject({
          reason: 'Conflict',
        })
      })

      test('of many updates of one version exactly one wins [GND-R85]', async () => {
        const name = unique('raced')
        const first = await create(configMap(namespace, name))
        const outcomes = await Promise.all(
          Array.from({ length: 8 }, (_, i) =>
            update({ ...first, data: { writer: String(i) } }).then(
              () => 'won',
              (error: { reason?: string }) => error.reason,
            ),
          ),
        )
        expect(outcomes.filter((outcome) => outcome === 'won')).toHaveLength(1)
        expect(outcomes.filter((outcome) => outcome === 'Conflict')).toHaveLength(7)
      })

      test('a delete without preconditions succeeds although others keep writing [GND-R85]', async () => {
        const name = unique('busy')
        await create(configMap(namespace, name, { n: '0' }))
        const writers = Array.from({ length: 10 }, (_, i) =>
          update(configMap(namespace, name, { n: String(i + 1) })).catch(() => undefined),
        )
        await remove(configMap(namespace, name))
        await Promise.all(writers)
        expect(await get(configMaps, { namespace, name })).toBeUndefined()
      })
    })

    describe('subresources', () => {
      const ready = { conditions: [{ type: 'Ready', status: 'True' }] }

      test('a write to status changes nothing but the status [GND-R85]', async () => {
        const made = await create(node(unique('node'), { spec: { providerID: 'x://1' } }))
        const sent = { ...made, spec: { providerID: 'x://1', unschedulable: true }, status: ready }
        const written = await update(sent, { subresource: 'status' })
        expect(written['status']).toMatchObject(ready)
        expect(written['spec']).toEqual(made['spec'])
        expect(await get(nodes, { name: made.metadata.name })).toEqual(written)
      })

      test('a write to the object leaves its status as it is [GND-R85]', async () => {
        const made = await create(node(unique('node')))
        const before = await update({ ...made, status: ready }, { subresource: 'status' })
        const spec = { ...(before['spec'] as object), unschedulable: true }
        const written = await update({ ...before, spec, status: {} })
        expect(written['spec']).toMatchObject({ unschedulable: true })
        expect(written['status']).toEqual(before['status'])
      })

      test('a subresource that the kind does not have is NotFound [GND-R85]', async () => {
        const made = await create(configMap(namespace, unique('plain')))
        await expect(update(made, { subresource: 'status' })).rejects.toMatchObject({
          reason: 'NotFound',
        })
      })
    })

    describe('selectors', () => {
      let app: string
      beforeAll(async () => {
        app = unique('select')
        await create(configMap(namespace, `${app}-a`, {}, { app, tier: 'front' }))
        await create(configMap(namespace, `${app}-b`, {}, { app, tier: 'back' }))
        await create(configMap(namespace, `${app}-c`, {}, { app }))
      })

      test.each([
        ['tier=front', ['a']],
        ['tier!=front', ['b', 'c']],
        ['tier', ['a', 'b']],
        ['!tier', ['c']],
        ['tier in (front, back)', ['a', 'b']],
        ['tier notin (back)', ['a', 'c']],
      ])('a list by the labels %s has only what matches [GND-R85]', async (selector, expected) => {
        const query = { namespace, labelSelector: `app=${app},${selector}` }
        expect(await namesIn(configMaps, query)).toEqual(expected.map((end) => `${app}-${end}`))
      })

      test('a list by fields has only what matches [GND-R85]', async () => {
        const byName = { namespace, fieldSelector: `metadata.name=${app}-b` }
        expect(await namesIn(configMaps, byName)).toEqual([`${app}-b`])
        await create(secret(namespace, `${app}-typed`, 'example.com/typed'))
        await create(secret(namespace, `${app}-plain`, 'Opaque'))
        const byType = { namespace, fieldSelector: 'type=example.com/typed' }
        expect(await namesIn(secrets, byType)).toEqual([`${app}-typed`])
      })

      test.each([
        ['label', { labelSelector: 'a in (b' }],
        ['field', { fieldSelector: 'spec.unknown=1' }],
      ])('a %s selector that cannot be understood is a BadRequest [GND-R85]', async (_, query) => {
        await expect(namesIn(configMaps, query)).rejects.toMatchObject({ reason: 'BadRequest' })
      })
    })

    describe('watches', () => {
      test('a watch from a version tells all that came after it, in order [GND-R85]', async () => {
        const from = await now()
        const [a, b] = [unique('a'), unique('b')]
        const made = await create(configMap(namespace, a, { n: '1' }))
        const changed = await update({ ...made, data: { n: '2' } })
        await create(configMap(namespace, b))
        await remove(configMap(namespace, a))
        const seen = await changesOf(view, configMaps, { namespace, from }, 4)
        expect(brief(seen)).toEqual([`ADDED ${a}`, `MODIFIED ${a}`, `ADDED ${b}`, `DELETED ${a}`])
        expect(seen[0]?.object).toEqual(made)
        expect(seen[1]?.object).toEqual(changed)
        expect(seen[3]?.object).toMatchObject({ data: { n: '2' } })
        const versions = seen.map(({ object }) => Number(object.metadata.resourceVersion))
        expect(versions).toEqual(versions.toSorted((x, y) => x - y))
        expect(new Set(versions).size).toBe(4)
      })

      test('a watch can be taken up at the version of any event, deletions too [GND-R85]', async () => {
        const from = await now()
        const [a, b] = [unique('a'), unique('b')]
        await create(configMap(namespace, a))
        await remove(configMap(namespace, a))
        await create(configMap(namespace, b))
        const all = await changesOf(view, configMaps, { namespace, from }, 3)
        for (const [index, { object }] of all.slice(0, 2).entries()) {
          const resumed = { namespace, from: String(object.metadata.resourceVersion) }
          const rest = await changesOf(view, configMaps, resumed, 2 - index)
          expect(brief(rest)).toEqual(brief(all.slice(index + 1)))
        }
      })

      test('changes arrive while the watch is open [GND-R85]', async () => {
        const name = unique('live')
        const seen = changesOf(view, configMaps, { namespace, from: await now() }, 2)
        const made = await create(configMap(namespace, name))
        await remove(made)
        expect(brief(await seen)).toEqual([`ADDED ${name}`, `DELETED ${name}`])
      })

      test('an object that labels let in or go is ADDED or DELETED [GND-R85]', async () => {
        const name = unique('painted')
        const from = await now()
        const paint = (color: string) => update(configMap(namespace, name, {}, { color }))
        await create(configMap(namespace, name, {}, { color: 'blue' }))
        await paint('red')
        await paint('blue')
        await paint('red')
        const query = { namespace, labelSelector: 'color=red', from }
        const seen = await changesOf(view, configMaps, query, 3)
        expect(brief(seen)).toEqual([`ADDED ${name}`, `DELETED ${name}`, `ADDED ${name}`])
      })

      test('a watch by field tells of the chosen object only [GND-R85]', async () => {
        const from = await now()
        const [mine, other] = [unique('mine'), unique('other')]
        await create(configMap(namespace, other))
        await create(configMap(namespace, mine))
        await remove(configMap(namespace, other))
        await remove(configMap(namespace, mine))
        const query = { namespace, fieldSelector: `metadata.name=${mine}`, from }
        const seen = await changesOf(view, configMaps, query, 2)
        expect(brief(seen)).toEqual([`ADDED ${mine}`, `DELETED ${mine}`])
      })

      test('a watch of all namespaces and one of a cluster kind tell of theirs [GND-R85]', async () => {
        const name = unique('watched')
        const fieldSelector = `metadata.name=${name}`
        const from = await now()
        await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
        await create(configMap(name, name))
        const spaces = await changesOf(view, namespaces, { fieldSelector, from }, 1)
        expect(brief(spaces)).toEqual([`ADDED ${name}`])
        const maps = await changesOf(view, configMaps, { fieldSelector, from }, 1)
        expect(maps[0]?.object.metadata).toMatchObject({ namespace: name, name })
      })

      test('an abort ends a watch at once and without an error [GND-R85]', async () => {
        const stop = new AbortController()
        const query = { namespace, labelSelector: 'never=seen', from: await now() }
        const reading = (async () => {
          for await (const event of view.watch(configMaps, query, stop.signal)) {
            expect(event.type).toBe('BOOKMARK')
          }
          return 'ended'
        })()
        setImmediate(() => stop.abort(new Error('enough')))
        expect(await reading).toBe('ended')
      })

      test('a reader who leaves ends the watch [GND-R85]', async () => {
        const from = await now()
        await create(configMap(namespace, unique('left')))
        for await (const event of view.watch(configMaps, { namespace, from }, signal)) {
          if (event.type === 'ADDED') break
        }
        expect(await get(configMaps, { namespace, name: 'absent' })).toBeUndefined()
      })

      const { expiredVersion } = abilities
      testOf(expiredVersion)(
        'a watch from before the kept history is Expired [GND-R85]',
        async () => {
          const from = await expiredVersion!(view)
          await expect(changesOf(view, configMaps, { namespace, from }, 1)).rejects.toMatchObject({
            reason: 'Expired',
          })
        },
      )
    })

    describe('refusals', () => {
      const absent = () => configMap(namespace, 'absent')

      test.each([
        ['an update of an object that is not there', () => update(absent()), 'NotFound'],
        ['a delete of an object that is not there', () => remove(absent()), 'NotFound'],
        [
          'an object in a namespace that is not there',
          () => create(configMap('absent', 'x')),
          'NotFound',
        ],
        [
          'a name that is not allowed',
          () => create(configMap(namespace, 'Not_Allowed')),
          'Invalid',
        ],
        [
          'a get of a kind that is not served',
          () => get(notServed, { namespace, name: 'x' }),
          'NotFound',
        ],
        [
          'a list of a kind that is not served',
          () => namesIn(notServed, { namespace }),
          'NotFound',
        ],
        [
          'a write of a kind that is not served',
          () => create({ ...absent(), apiVersion: 'nowhere.example.com/v1', kind: 'Unicorn' }),
          'NotFound',
        ],
      ])('%s is refused with its reason [GND-R85]', async (_, attempt, reason) => {
        await expect(attempt()).rejects.toMatchObject({ name: 'ApiError', reason })
      })

      test('a second object of a name is AlreadyExists and names it [GND-R85]', async () => {
        const name = unique('twice')
        await create(configMap(namespace, name))
        await expect(create(configMap(namespace, name))).rejects.toMatchObject({
          reason: 'AlreadyExists',
          message: `configmaps "${name}" already exists`,
          details: { name, kind: 'configmaps' },
        })
      })

      test('every problem of an object is told, each with its field [GND-R85]', async () => {
        const draft = configMap(namespace, 'Not_Allowed', { 'a b': '' }, { '-': 'x' })
        const error: unknown = await create(draft).catch((caught: unknown) => caught)
        const { causes } = (error as { details: { causes: { field: string }[] } }).details
        expect(causes.map(({ field }) => field).toSorted()).toEqual([
          'data[a b]',
          'metadata.labels',
          'metadata.name',
        ])
      })
    })

    describe('reviews', () => {
      const ask = async (kind: ReviewKind, spec: object, metadata: { namespace?: string } = {}) => {
        const group =
          kind.includes('Token') || kind === 'SelfSubjectReview'
            ? 'authentication'
            : 'authorization'
        const apiVersion = `${group}.k8s.io/v1`
        const object = { apiVersion, kind, metadata: { name: '', ...metadata }, spec }
        const answer = await view.review(kind, object, signal)
        return answer['status'] as Record<string, unknown>
      }
      const readSecrets = () => ({ namespace, verb: 'get', resource: 'secrets' })

      test.each([
        ['SubjectAccessReview', [wellKnown.masters], true],
        ['SubjectAccessReview', ['nobodies'], false],
        ['LocalSubjectAccessReview', [wellKnown.masters], true],
        ['LocalSubjectAccessReview', ['nobodies'], false],
      ] as const)('%s decides about a user of %s: %s [GND-R85]', async (kind, groups, allowed) => {
        const spec = { user: 'jane', groups, resourceAttributes: readSecrets() }
        const metadata = kind === 'LocalSubjectAccessReview' ? { namespace } : {}
        expect((await ask(kind, spec, metadata))['allowed'] ?? false).toBe(allowed)
      })

      test('the reviews of oneself answer for the one who asks [GND-R85]', async () => {
        const access = { resourceAttributes: readSecrets() }
        expect(await ask('SelfSubjectAccessReview', access)).toMatchObject({ allowed: true })
        expect(await ask('SelfSubjectRulesReview', { namespace })).toMatchObject({
          resourceRules: expect.arrayContaining([expect.objectContaining({ verbs: ['*'] })]),
        })
        expect(await ask('SelfSubjectReview', {})).toMatchObject({
          userInfo: { groups: expect.arrayContaining([wellKnown.authenticated]) },
        })
      })

      test('a token that nobody knows is not authenticated [GND-R85]', async () => {
        const status = await ask('TokenReview', { token: 'made-up' })
        expect(status['authenticated'] ?? false).toBe(false)
        expect(status['error']).toEqual(expect.any(String))
      })

      const { token, issuesTokens } = abilities
      testOf(token)('a known token is told to be its user [GND-R85]', async () => {
        const { value, username } = token!()
        expect(await ask('TokenReview', { token: value })).toMatchObject({
          authenticated: true,
          user: { username },
        })
      })

      testOf(issuesTokens)('a TokenRequest gives a token of its account [GND-R85]', async () => {
        const name = unique('account')
        await create({
          apiVersion: 'v1',
          kind: 'ServiceAccount',
          metadata: named(namespace, name),
        })
        const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' }
        const metadata = named(namespace, name)
        const spec = { audiences: [], expirationSeconds: 600 }
        const answer = await view.review('TokenRequest', { ...request, metadata, spec }, signal)
        const issued = answer['status'] as { token: string }
        expect(await ask('TokenReview', { token: issued.token })).toMatchObject({
          user: { username: `system:serviceaccount:${namespace}:${name}` },
        })
      })

      test('a review that asks nothing is Invalid [GND-R85]', async () => {
        await expect(ask('SubjectAccessReview', { user: 'jane' })).rejects.toMatchObject({
          reason: 'Invalid',
        })
      })
    })
  })
}
