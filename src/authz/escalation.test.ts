import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KubeObject, silentLogger, type UserInfo, type WriteAttempt } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { escalationAdmission } from './escalation-admission.ts'
import { binding, clusterBinding, clusterRole, person, role } from './policy-objects.suite.ts'
import { RbacAuthorizer } from './rbac-authorizer.ts'
import { rbacGroup, rbacKinds } from './rbac-objects.ts'

const reads = { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }
const right = (resource: string, verb: string, ...names: string[]) => ({
  apiGroups: [rbacGroup],
  resources: [resource],
  verbs: [verb],
  ...(names.length > 0 && { resourceNames: names }),
})

const view = new FakeClusterView({
  objects: [
    clusterRole('reader', reads),
    clusterRole('everything', { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }),
    clusterRole('all-paths', { nonResourceURLs: ['*'], verbs: ['*'] }),
    clusterRole('escalator', right('clusterroles', 'escalate')),
    clusterRole('escalator-of-a', right('clusterroles', 'escalate', 'a')),
    clusterRole('binder-of-admin', right('clusterroles', 'bind', 'admin')),
    clusterRole('admin', { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }),
    role('dev', 'local', { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }),
    clusterBinding('reader', 'ClusterRole reader', 'User reader'),
    clusterBinding('owner', 'ClusterRole everything', 'User owner'),
    clusterRole('nearly', { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'create'] }),
    clusterBinding('half-owner', 'ClusterRole nearly', 'User half-owner'),
    clusterBinding('paths', 'ClusterRole all-paths', 'User owner'),
    clusterBinding('escalator', 'ClusterRole escalator', 'User escalator'),
    clusterBinding('escalator-of-a', 'ClusterRole escalator-of-a', 'User escalator-of-a'),
    binding('dev/binder', 'ClusterRole binder-of-admin', 'User binder'),
    binding('dev/reader', 'ClusterRole reader', 'User dev-reader'),
  ],
})
const rbac = new RbacAuthorizer(view, silentLogger)
const admit = escalationAdmission({ authorizer: rbac, rbac, view })

beforeAll(() => rbac.start())
afterAll(() => rbac.stop(AbortSignal.timeout(1000)))

const kinds = Object.values(rbacKinds)

function attempt(user: UserInfo, object: KubeObject, oldObject?: KubeObject): WriteAttempt {
  const kind = kinds.find((each) => each.kind === object.kind)!
  return {
    user,
    operation: oldObject ? 'update' : 'create',
    kind,
    subresource: '',
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    object,
    ...(oldObject && { oldObject }),
    dryRun: false,
  }
}

const signal = new AbortController().signal
const outcome = async (write: WriteAttempt) => {
  try {
    await admit(write, signal)
    return 'admitted'
  } catch (error) {
    return error instanceof Error ? error.message : 'thrown'
  }
}

const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }
const gathering = (name: string): KubeObject => ({
  ...clusterRole(name),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
})

describe('a role [GND-R80]', () => {
  test.each([
    ['with rules of its writer', person('reader'), clusterRole('x', reads), true],
    ['with other rules', person('reader'), clusterRole('x', secrets), false],
    [
      'in a namespace where its writer has the rules',
      person('dev-reader'),
      role('dev', 'x', reads),
      true,
    ],
    ['in another namespace', person('dev-reader'), role('prod', 'x', reads), false],
    [
      'of the cluster by rules of a namespace',
      person('dev-reader'),
      clusterRole('x', reads),
      false,
    ],
    ['by someone who may escalate', person('escalator'), clusterRole('x', secrets), true],
    [
      'of another kind than may be escalated',
      person('escalator'),
      role('dev', 'x', secrets),
      false,
    ],
    [
      'created by someone who may escalate by name',
      person('escalator-of-a'),
      clusterRole('a', secrets),
      false,
    ],
    ['by a superuser', person('root', 'system:masters'), clusterRole('x', secrets), true],
    ['that gathers, by one with every right', person('owner'), gathering('x'), true],
    ['that gathers, by one with less', person('half-owner'), gathering('x'), false],
    ['that gathers, by one who may escalate', person('escalator'), gathering('x'), true],
  ])('%s', async (_what, user, object, admitted) => {
    expect((await outcome(attempt(user, object))) === 'admitted').toBe(admitted)
  })

  test('is refused in Kubernetes’ words', async () => {
    const wanted = clusterRole(
      'big',
      { ...secrets, resourceNames: ['a', 'b'], verbs: ['list', 'get'] },
      { nonResourceURLs: ['/metrics'], verbs: ['get', 'post'] },
      reads,
    )
    expect(await outcome(attempt(person('reader', 'g1', 'g2'), wanted))).toBe(
      [
        'clusterroles.rbac.authorization.k8s.io "big" is forbidden: user "reader" (groups=["g1" "g2"]) is attempting to grant RBAC permissions not currently held:',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["list" "get"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["list" "get"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["post"]}',
      ].join('\n'),
    )
    expect(await outcome(attempt(person('half-owner'), gathering('x')))).toBe(
      'clusterroles.rbac.authorization.k8s.io "x" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    )
  })

  test('may be updated by name by one who may escalate that name', async () => {
    const old = clusterRole('a')
    const user = person('escalator-of-a')
    expect(await outcome(attempt(user, clusterRole('a', secrets), old))).toBe('admitted')
  })

  test('that holds more than its writer has cannot be touched, but for owners and finalizers', async () => {
    const old = clusterRole('x', secrets)
    const relabelled = { ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }
    const finalized = { ...old, metadata: { ...old.metadata, finalizers: ['f'] } }
    expect(await outcome(attempt(person('reader'), relabelled, old))).toContain('is forbidden')
    expect(await outcome(attempt(person('reader'), finalized, old))).toBe('admitted')
  })

  test('that gathers cannot lose its aggregation by one with less than every right', async () => {
    expect(await outcome(attempt(person('reader'), clusterRole('x'), gathering('x')))).toContain(
      'aggregationRule',
    )
  })
})

describe('a binding [GND-R80]', () => {
  test.each([
    [
      'of rules its writer has',
      person('reader'),
      clusterBinding('x', 'ClusterRole reader', 'User e'),
      true,
    ],
    ['of more', person('reader'), clusterBinding('x', 'ClusterRole admin', 'User e'), false],
    [
      'by one who may bind it there',
      person('binder'),
      binding('dev/x', 'ClusterRole admin', 'User e'),
      true,
    ],
    [
      'elsewhere by one who may bind it there',
      person('binder'),
      binding('prod/x', 'ClusterRole admin', 'User e'),
      false,
    ],
    [
      'cluster-wide by one who may bind it there',
      person('binder'),
      clusterBinding('x', 'ClusterRole admin', 'User e'),
      false,
    ],
    [
      'of another role',
      person('binder'),
      binding('dev/x', 'ClusterRole everything', 'User e'),
      false,
    ],
    [
      'of a local role with more',
      person('dev-reader'),
      binding('dev/x', 'Role local', 'User e'),
      false,
    ],
    [
      'by a superuser',
      person('root', 'system:masters'),
      binding('dev/x', 'Role nope', 'User e'),
      true,
    ],
  ])('%s', async (_what, user, object, admitted) => {
    expect((await outcome(attempt(user, object))) === 'admitted').toBe(admitted)
  })

  test('of a role that is not there is 404 in Kubernetes’ words', async () => {
    expect(await outcome(attempt(person('reader'), binding('dev/x', 'Role nope', 'User e')))).toBe(
      'rolebindings.rbac.authorization.k8s.io "nope" not found',
    )
  })

  test('is judged by the role as stored, not by a cache', async () => {
    view.put(role('dev', 'fresh', secrets))
    expect(
      await outcome(attempt(person('dev-reader'), binding('dev/x', 'Role fresh', 'User e'))),
    ).toContain('permissions not currently held')
  })
})

test('deletes and other kinds are none of its business', async () => {
  const write = attempt(person('reader'), clusterRole('x', secrets))
  expect(await outcome({ ...write, operation: 'delete' })).toBe('admitted')
  const configMap = {
    group: '',
    version: 'v1',
    kind: 'ConfigMap',
    resource: 'configmaps',
    namespaced: true,
  }
  expect(await outcome({ ...write, kind: configMap })).toBe('admitted')
})
