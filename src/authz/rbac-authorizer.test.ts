import { afterEach, describe, expect, test, vi } from 'vitest'
import { ApiError, silentLogger } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import {
  asks,
  asksPath,
  binding,
  clusterBinding,
  clusterRole,
  person,
  role,
} from './policy-objects.suite.ts'
import { RbacAuthorizer } from './rbac-authorizer.ts'

const started: RbacAuthorizer[] = []

async function rbacOn(view: FakeClusterView): Promise<RbacAuthorizer> {
  const rbac = new RbacAuthorizer(view, silentLogger)
  started.push(rbac)
  await rbac.start()
  return rbac
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((rbac) => rbac.stop(AbortSignal.timeout(1000))))
})

const alice = person('alice', 'ops', 'system:authenticated')
const builder = person('system:serviceaccount:ci:builder', 'system:serviceaccounts')

const reads = { apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list'] }

describe('rules', () => {
  const policy = () =>
    new FakeClusterView({
      objects: [
        clusterRole('reader', reads),
        clusterRole('all', { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }),
        clusterRole(
          'mixed',
          { apiGroups: ['apps'], resources: ['*/scale'], verbs: ['get'] },
          { apiGroups: [''], resources: ['secrets'], resourceNames: ['a', 'b'], verbs: ['get'] },
          { nonResourceURLs: ['/metrics', '/logs/*'], verbs: ['get'] },
          { apiGroups: [''], resources: ['nodes'], verbs: ['*'] },
          { apiGroups: ['*'], resources: ['events'], verbs: ['create'] },
        ),
        clusterBinding('root', 'ClusterRole all', 'User root'),
        clusterBinding('mixed', 'ClusterRole mixed', 'User alice'),
        binding('dev/read', 'ClusterRole reader', 'Group ops'),
      ],
    })

  test.each([
    [true, asks(alice, 'get', 'pods', { namespace: 'dev' })],
    [true, asks(alice, 'list', 'pods/log', { namespace: 'dev', name: 'x' })],
    [false, asks(alice, 'get', 'pods/status', { namespace: 'dev' })],
    [false, asks(alice, 'watch', 'pods', { namespace: 'dev' })],
    [false, asks(alice, 'get', 'pods', { namespace: 'prod' })],
    [false, asks(alice, 'get', 'pods')],
    [false, asks(alice, 'get', 'pods.metrics.k8s.io', { namespace: 'dev' })],
    [true, asks(alice, 'get', 'deployments/scale.apps', { namespace: 'prod' })],
    [false, asks(alice, 'get', 'deployments.apps', { namespace: 'prod' })],
    [false, asks(alice, 'get', 'deployments/scales.apps', { namespace: 'prod' })],
    [true, asks(alice, 'get', 'secrets', { namespace: 'dev', name: 'a' })],
    [false, asks(alice, 'get', 'secrets', { namespace: 'dev', name: 'c' })],
    [false, asks(alice, 'list', 'secrets', { namespace: 'dev', name: 'a' })],
    [false, asks(alice, 'get', 'secrets', { namespace: 'dev' })],
    [true, asks(alice, 'proxy', 'nodes')],
    [false, asks(alice, 'proxy', 'nodes/proxy')],
    [true, asks(alice, 'create', 'events', { namespace: 'prod' })],
    [true, asks(alice, 'create', 'events.events.k8s.io', { namespace: 'prod' })],
    [true, asksPath(alice, 'get', '/metrics')],
    [false, asksPath(alice, 'post', '/metrics')],
    [false, asksPath(alice, 'get', '/metrics/cadvisor')],
    [true, asksPath(alice, 'get', '/logs/kernel')],
    [false, asksPath(alice, 'get', '/logs')],
    [true, asks(person('root'), 'anything', 'things/part.example.com', { namespace: 'x' })],
    [false, asksPath(person('root'), 'get', '/metrics')],
    [false, asks(person('ALICE'), 'create', 'events')],
    [false, asks(person('constructor', '__proto__'), 'get', 'toString')],
  ])('allowed is %s for %j [GND-R79]', async (allowed, attributes) => {
    const rbac = await rbacOn(policy())
    expect(rbac.authorize(attributes).allowed).toBe(allowed)
    expect(rbac.authorize(attributes).allowed, 'from the cache').toBe(allowed)
  })
})

describe('reasons', () => {
  test.each([
    ['a user', 'User alice', 'User "alice"'],
    ['a group', 'Group ops', 'Group "ops"'],
    ['the first subject that applies', 'User bob,Group ops', 'Group "ops"'],
  ])('name %s as Kubernetes does', async (_what, subjects, shown) => {
    const rbac = await rbacOn(
      new FakeClusterView({
        objects: [
          clusterRole('reader', reads),
          clusterBinding('x', 'ClusterRole reader', ...subjects.split(',')),
        ],
      }),
    )
    expect(rbac.authorize(asks(alice, 'get', 'pods'))).toEqual({
      allowed: true,
      reason: `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "reader" to ${shown}`,
    })
  })

  test('name the namespace of a role binding and of a service account', async () => {
    const rbac = await rbacOn(
      new FakeClusterView({
        objects: [
          role('ci', 'reader', reads),
          binding('ci/read', 'Role reader', 'ServiceAccount builder'),
        ],
      }),
    )
    expect(rbac.authorize(asks(builder, 'get', 'pods', { namespace: 'ci' })).reason).toBe(
      'RBAC: allowed by RoleBinding "read/ci" of Role "reader" to ServiceAccount "builder/ci"',
    )
  })

  test('a role that is gone is named in the refusal', async () => {
    const rbac = await rbacOn(
      new FakeClusterView({
        objects: [
          clusterBinding('a', 'ClusterRole lost', 'User alice'),
          binding('dev/b', 'Role lost2', 'User alice'),
        ],
      }),
    )
    expect(rbac.authorize(asks(alice, 'get', 'nodes')).reason).toBe(
      'RBAC: clusterrole.rbac.authorization.k8s.io "lost" not found',
    )
    expect(rbac.authorize(asks(alice, 'get', 'pods', { namespace: 'dev' })).reason).toBe(
      'RBAC: [clusterrole.rbac.authorization.k8s.io "lost" not found, ' +
        'role.rbac.authorization.k8s.io "lost2" not found]',
    )
  })
})

test('a cluster binding without namespace does not mean a service account of any namespace', async () => {
  const rbac = await rbacOn(
    new FakeClusterView({
      objects: [
        clusterRole('reader', reads),
        clusterBinding('x', 'ClusterRole reader', 'ServiceAccount builder'),
      ],
    }),
  )
  const nameless = person('system:serviceaccount::builder')
  for (const user of [builder, nameless]) {
    expect(rbac.authorize(asks(user, 'get', 'pods', { namespace: 'ci' })).allowed).toBe(false)
  }
})

test('a role of one namespace is not found from another', async () => {
  const rbac = await rbacOn(
    new FakeClusterView({
      objects: [role('ci', 'reader', reads), binding('dev/x', 'Role reader', 'User alice')],
    }),
  )
  expect(rbac.authorize(asks(alice, 'get', 'pods', { namespace: 'dev' })).allowed).toBe(false)
  expect(rbac.authorize(asks(alice, 'get', 'pods', { namespace: 'ci' })).allowed).toBe(false)
})

describe('changes', () => {
  const may = (rbac: RbacAuthorizer) =>
    rbac.authorize(asks(alice, 'get', 'pods', { namespace: 'dev' })).allowed

  test('of roles and bindings count at once, also for users in the cache', async () => {
    const view = new FakeClusterView({ objects: [clusterRole('reader', reads)] })
    const rbac = await rbacOn(view)
    expect(may(rbac)).toBe(false)
    const bound = view.put(binding('dev/x', 'ClusterRole reader', 'User alice'))
    await vi.waitFor(() => expect(may(rbac)).toBe(true))
    view.put(clusterRole('reader'))
    await vi.waitFor(() => expect(may(rbac)).toBe(false))
    view.put(clusterRole('reader', reads))
    await vi.waitFor(() => expect(may(rbac)).toBe(true))
    await view.write('delete', bound, {}, new AbortController().signal)
    await vi.waitFor(() => expect(may(rbac)).toBe(false))
  })

  test('a subject taken off a binding loses its rights', async () => {
    const view = new FakeClusterView({
      objects: [
        clusterRole('reader', reads),
        binding('dev/x', 'ClusterRole reader', 'User alice', 'User bob'),
      ],
    })
    const rbac = await rbacOn(view)
    expect(may(rbac)).toBe(true)
    view.put(binding('dev/x', 'ClusterRole reader', 'User bob'))
    await vi.waitFor(() => expect(may(rbac)).toBe(false))
  })

  test('a lost watch keeps what was known and catches up', async () => {
    const view = new FakeClusterView({
      objects: [clusterRole('reader', reads), binding('dev/x', 'ClusterRole reader', 'User alice')],
    })
    const rbac = await rbacOn(view)
    view.fail(new ApiError('ServiceUnavailable', 'away'))
    expect(may(rbac)).toBe(true)
    view.put(clusterRole('reader'))
    expect(may(rbac)).toBe(true)
    view.fail(undefined)
    await vi.waitFor(() => expect(may(rbac)).toBe(false))
  })

  test('after 410 what was deleted meanwhile is gone', async () => {
    const bound = binding('dev/x', 'ClusterRole reader', 'User alice')
    const view = new FakeClusterView({ objects: [clusterRole('reader', reads), bound] })
    const rbac = await rbacOn(view)
    expect(may(rbac)).toBe(true)
    view.fail(new ApiError('ServiceUnavailable', 'away'))
    await vi.waitFor(() => expect(view.openWatches).toBe(0))
    view.fail(undefined)
    await view.write('delete', bound, {}, new AbortController().signal)
    view.compact()
    await vi.waitFor(() => expect(may(rbac)).toBe(false))
  })
})

test('the rules of a user are listed for SelfSubjectRulesReview', async () => {
  const rbac = await rbacOn(
    new FakeClusterView({
      objects: [
        clusterRole('paths', { nonResourceURLs: ['/version'], verbs: ['get'] }),
        role('dev', 'named', { ...reads, resourceNames: ['a'] }),
        clusterBinding('p', 'ClusterRole paths', 'Group ops'),
        binding('dev/n', 'Role named', 'User alice'),
        binding('dev/lost', 'Role lost', 'User alice'),
      ],
    }),
  )
  expect(rbac.rulesFor(alice, 'dev')).toEqual({
    resourceRules: [{ ...reads, resourceNames: ['a'] }],
    nonResourceRules: [{ nonResourceURLs: ['/version'], verbs: ['get'] }],
    incomplete: false,
    evaluationError: 'role.rbac.authorization.k8s.io "lost" not found',
  })
  expect(rbac.rulesFor(alice, 'other').resourceRules).toEqual([])
})

test('users whose names and groups run together are kept apart', async () => {
  const rbac = await rbacOn(
    new FakeClusterView({
      objects: [
        clusterRole('reader', reads),
        clusterBinding('x', 'ClusterRole reader', 'Group admins'),
      ],
    }),
  )
  const question = (user: ReturnType<typeof person>) =>
    rbac.authorize(asks(user, 'get', 'pods')).allowed
  expect(question(person('eve', 'admins'))).toBe(true)
  expect(question(person('eve","admins'))).toBe(false)
  expect(question(person('eve\0admins'))).toBe(false)
})

test('stop ends the watches', async () => {
  const view = new FakeClusterView()
  const rbac = await rbacOn(view)
  await vi.waitFor(() => expect(view.openWatches).toBe(4))
  await rbac.stop(AbortSignal.timeout(1000))
  expect(view.openWatches).toBe(0)
})
