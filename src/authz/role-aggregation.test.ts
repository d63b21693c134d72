import { afterEach, describe, expect, test, vi } from 'vitest'
import { type KubeObject, silentLogger } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { defaultPolicy } from './default-policy/roles.ts'
import { labelSelector } from './label-selector.ts'
import { clusterRole } from './policy-objects.suite.ts'
import { rbacKinds, readRules } from './rbac-objects.ts'
import { RoleAggregation } from './role-aggregation.ts'

const signal = new AbortController().signal
const started: RoleAggregation[] = []

async function aggregationOn(view: FakeClusterView): Promise<void> {
  const aggregation = new RoleAggregation(view, silentLogger)
  started.push(aggregation)
  await aggregation.start()
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.stop(AbortSignal.timeout(1000))))
})

const rulesOf = async (view: FakeClusterView, name: string) =>
  readRules((await view.get(rbacKinds.clusterRole, { name }, signal))!)

const labelled = (role: KubeObject, labels: Record<string, string>): KubeObject => ({
  ...role,
  metadata: { ...role.metadata, labels },
})
const gathering = (name: string, ...clusterRoleSelectors: object[]): KubeObject => ({
  ...clusterRole(name),
  aggregationRule: { clusterRoleSelectors },
})
const gets = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get'] })

test('admin, edit and view are filled when it has started [GND-R79]', async () => {
  const view = new FakeClusterView({ objects: defaultPolicy })
  await aggregationOn(view)
  const [view_, edit, admin] = await Promise.all(
    ['view', 'edit', 'admin'].map((name) => rulesOf(view, name)),
  )
  expect(view_).toEqual(await rulesOf(view, 'system:aggregate-to-view'))
  expect(edit).toEqual(expect.arrayContaining(view_!))
  expect(edit).toEqual(expect.arrayContaining(await rulesOf(view, 'system:aggregate-to-edit')))
  expect(admin).toEqual(expect.arrayContaining(edit!))
  expect(admin).toEqual(expect.arrayContaining(await rulesOf(view, 'system:aggregate-to-admin')))
})

test('roles are gathered by selector, sorted by name, without doubles and without itself', async () => {
  const view = new FakeClusterView({
    objects: [
      labelled(gathering('sum', { matchLabels: { to: 'sum' } }, { matchLabels: { also: 'x' } }), {
        to: 'sum',
      }),
      labelled(clusterRole('b', gets('b'), gets('shared')), { to: 'sum' }),
      labelled(clusterRole('a', gets('a'), gets('shared')), { to: 'sum' }),
      labelled(clusterRole('c', gets('c'), gets('a')), { also: 'x' }),
      labelled(clusterRole('d', gets('d')), { to: 'other' }),
    ],
  })
  await aggregationOn(view)
  const resources = (await rulesOf(view, 'sum')).map((rule) => rule.resources[0])
  expect(resources).toEqual(['a', 'shared', 'b', 'c'])
})

test('it follows changes, and takes away what nobody gives any more', async () => {
  const sum = labelled(gathering('sum', { matchLabels: { to: 'sum' } }), { to: 'sum' })
  const view = new FakeClusterView({ objects: [sum] })
  await aggregationOn(view)
  expect(await rulesOf(view, 'sum')).toEqual([])
  const added = view.put(labelled(clusterRole('a', gets('a')), { to: 'sum' }))
  await vi.waitFor(async () => expect(await rulesOf(view, 'sum')).toHaveLength(1))
  await view.write('delete', added, {}, signal)
  await vi.waitFor(async () => expect(await rulesOf(view, 'sum')).toHaveLength(0))
})

test('rules that somebody writes into an aggregated role are taken out again', async () => {
  const view = new FakeClusterView({ objects: [gathering('sum', { matchLabels: { to: 'sum' } })] })
  await aggregationOn(view)
  view.put({ ...gathering('sum', { matchLabels: { to: 'sum' } }), rules: [gets('secrets')] })
  await vi.waitFor(async () => expect(await rulesOf(view, 'sum')).toHaveLength(0))
})

test('a selector that cannot be understood leaves its role alone and the others filled', async () => {
  const view = new FakeClusterView({
    objects: [
      {
        ...gathering('bad', { matchExpressions: [{ key: 'x', operator: 'Like' }] }),
        rules: [gets('x')],
      },
      gathering('good', { matchLabels: { to: 'good' } }),
      labelled(clusterRole('a', gets('a')), { to: 'good' }),
    ],
  })
  await aggregationOn(view)
  expect(await rulesOf(view, 'bad')).toHaveLength(1)
  expect(await rulesOf(view, 'good')).toHaveLength(1)
})

describe('a label selector', () => {
  const labels = { app: 'web', tier: 'front' }
  const expression = (key: string, operator: string, ...values: string[]) => ({
    matchExpressions: [{ key, operator, values }],
  })
  test.each([
    [{}, true],
    [{ matchLabels: { app: 'web' } }, true],
    [{ matchLabels: { app: 'web', tier: 'back' } }, false],
    [{ matchLabels: { constructor: 'x' } }, false],
    [expression('app', 'In', 'db', 'web'), true],
    [expression('none', 'In', 'db'), false],
    [expression('app', 'NotIn', 'web'), false],
    [expression('none', 'NotIn', 'web'), true],
    [expression('tier', 'Exists'), true],
    [expression('toString', 'Exists'), false],
    [expression('tier', 'DoesNotExist'), false],
  ])('%j matches: %s', (selector, matches) => {
    expect(labelSelector(selector)(labels)).toBe(matches)
  })
})
