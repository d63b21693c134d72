import { expect, test } from 'vitest'
import { isRecord, type KubeObject, silentLogger } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { rbacKinds, readBinding, readRoleSelectors, readRules } from '../rbac-objects.ts'
// The answer of a kube-apiserver 1.36.3 to a get of all four kinds, without what is not of our kinds.
import kubernetes from './kubernetes-1.36.fixture.json' with { type: 'json' }
import { reconcileDefaultPolicy } from './reconcile.ts'
import { defaultPolicy } from './roles.ts'

const signal = new AbortController().signal

function nameOf({ kind, metadata }: KubeObject): string {
  return metadata.namespace
    ? `${kind} ${metadata.namespace}/${metadata.name}`
    : `${kind} ${metadata.name}`
}

function allowedBy(role: KubeObject): Record<string, string> {
  const verbs = new Map<string, Set<string>>()
  for (const rule of readRules(role)) {
    const resources = rule.apiGroups.flatMap((group) =>
      rule.resources.map((resource) => (group ? `${resource}.${group}` : resource)),
    )
    const named = resources.flatMap((resource) =>
      rule.resourceNames.map((name) => `${resource} ${name}`),
    )
    const objects = rule.resourceNames.length > 0 ? named : resources
    for (const object of [...objects, ...rule.nonResourceURLs]) {
      verbs.set(object, new Set([...(verbs.get(object) ?? []), ...rule.verbs]))
    }
  }
  return Object.fromEntries([...verbs].map(([key, set]) => [key, [...set].toSorted().join(' ')]))
}

const roles = defaultPolicy.filter((object) => !object.kind.endsWith('Binding'))
const bindings = defaultPolicy.filter((object) => object.kind.endsWith('Binding'))

const theirRoles: Record<string, { allows: object; labels?: string[]; gathers?: string[] }> =
  kubernetes.roles
const theirBindings: Record<string, { role: string; subjects: string[] }> = kubernetes.bindings

test.each(roles.map((role) => [nameOf(role), role] as const))(
  '%s allows what it allows in Kubernetes [GND-R79]',
  (name, role) => {
    expect(allowedBy(role)).toEqual(theirRoles[name]?.allows)
  },
)

test.each(roles.map((role) => [nameOf(role), role] as const))(
  '%s aggregates as in Kubernetes [GND-R79]',
  (name, role) => {
    const labels = Object.keys(role.metadata.labels ?? {}).filter((key) =>
      key.includes('aggregate'),
    )
    const gathers = readRoleSelectors(role)?.flatMap((selector) =>
      isRecord(selector) && isRecord(selector['matchLabels'])
        ? Object.keys(selector['matchLabels'])
        : [],
    )
    expect(labels).toEqual(theirRoles[name]?.labels ?? [])
    expect(gathers).toEqual(theirRoles[name]?.gathers)
  },
)

test.each(bindings.map((binding) => [nameOf(binding), binding] as const))(
  '%s binds whom it binds in Kubernetes [GND-R79]',
  (name, object) => {
    const { roleRef, subjects } = readBinding(object)
    expect(`${roleRef.kind} ${roleRef.name}`).toBe(theirBindings[name]?.role)
    expect(
      subjects.map(({ kind, namespace, name: who }) =>
        [kind, namespace, who].filter((part) => part !== '').join(' '),
      ),
    ).toEqual(theirBindings[name]?.subjects)
  },
)

test('what is left out of Kubernetes’ policy is left out on purpose', () => {
  const ours = new Set(defaultPolicy.map(nameOf))
  const left = [...Object.keys(theirRoles), ...Object.keys(theirBindings)]
    .filter((name) => !ours.has(name))
    .map((name) => name.replace(/^(Cluster)?Role(Binding)? /, ''))
  expect([...new Set(left)].toSorted()).toEqual([
    'kube-system/system::leader-locking-kube-scheduler',
    'kube-system/system:controller:cloud-provider',
    'system:controller:attachdetach-controller',
    'system:controller:cronjob-controller',
    'system:controller:daemon-set-controller',
    'system:controller:deployment-controller',
    'system:controller:device-taint-eviction-controller',
    'system:controller:disruption-controller',
    'system:controller:ephemeral-volume-controller',
    'system:controller:expand-controller',
    'system:controller:horizontal-pod-autoscaler',
    'system:controller:job-controller',
    'system:controller:legacy-service-account-token-cleaner',
    'system:controller:persistent-volume-binder',
    'system:controller:pv-protection-controller',
    'system:controller:pvc-protection-controller',
    'system:controller:replicaset-controller',
    'system:controller:replication-controller',
    'system:controller:resource-claim-controller',
    'system:controller:resourcequota-controller',
    'system:controller:route-controller',
    'system:controller:selinux-warning-controller',
    'system:controller:service-cidrs-controller',
    'system:controller:statefulset-controller',
    'system:controller:ttl-after-finished-controller',
    'system:controller:ttl-controller',
    'system:controller:validatingadmissionpolicy-status-controller',
    'system:controller:volumeattributesclass-protection-controller',
    'system:heapster',
    'system:kube-scheduler',
    'system:persistent-volume-provisioner',
    'system:volume-scheduler',
  ])
})

async function stored(view: FakeClusterView): Promise<KubeObject[]> {
  const lists = await Promise.all(
    Object.values(rbacKinds).map((kind) => view.list(kind, {}, signal)),
  )
  return lists.flatMap((list) => list.items)
}

const reconcile = (view: FakeClusterView) =>
  reconcileDefaultPolicy({ view, log: silentLogger }, signal)

const find = async (view: FakeClusterView, name: string) =>
  (await stored(view)).find((object) => nameOf(object) === name)

test('a new cluster gets the whole policy, marked as default', async () => {
  const view = new FakeClusterView()
  await reconcile(view)
  const objects = await stored(view)
  expect(objects.map(nameOf).toSorted()).toEqual(defaultPolicy.map(nameOf).toSorted())
  for (const { metadata } of objects) {
    expect(metadata.labels?.['kubernetes.io/bootstrapping']).toBe('rbac-defaults')
    expect(metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate']).toBe('true')
  }
})

test('a second start writes nothing', async () => {
  const view = new FakeClusterView()
  await reconcile(view)
  const before = await stored(view)
  await reconcile(view)
  expect(await stored(view)).toEqual(before)
})

test('rules and subjects that were taken away come back, additions stay', async () => {
  const view = new FakeClusterView()
  await reconcile(view)
  const extra = { apiGroups: [''], resources: ['pods'], verbs: ['get'] }
  view.put({ ...(await find(view, 'ClusterRole system:node-bootstrapper'))!, rules: [extra] })
  const guest = { kind: 'Group', name: 'guests', apiGroup: 'rbac.authorization.k8s.io' }
  view.put({ ...(await find(view, 'ClusterRoleBinding system:discovery'))!, subjects: [guest] })
  await reconcile(view)
  expect((await find(view, 'ClusterRole system:node-bootstrapper'))?.['rules']).toEqual([
    extra,
    {
      apiGroups: ['certificates.k8s.io'],
      resources: ['certificatesigningrequests'],
      verbs: ['create', 'get', 'list', 'watch'],
    },
  ])
  expect((await find(view, 'ClusterRoleBinding system:discovery'))?.['subjects']).toEqual([
    guest,
    { kind: 'Group', name: 'system:authenticated', apiGroup: 'rbac.authorization.k8s.io' },
  ])
})

test('an object that opted out is left alone', async () => {
  const view = new FakeClusterView()
  await reconcile(view)
  const role = (await find(view, 'ClusterRole system:discovery'))!
  role.metadata.annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' }
  view.put({ ...role, rules: [] })
  await reconcile(view)
  expect((await find(view, 'ClusterRole system:discovery'))?.['rules']).toEqual([])
})

test('a binding to another role is made anew', async () => {
  const view = new FakeClusterView()
  await reconcile(view)
  const binding = (await find(view, 'ClusterRoleBinding cluster-admin'))!
  view.put({ ...binding, roleRef: { ...(binding['roleRef'] as object), name: 'view' } })
  await reconcile(view)
  const again = (await find(view, 'ClusterRoleBinding cluster-admin'))!
  expect(readBinding(again).roleRef.name).toBe('cluster-admin')
  expect(again.metadata.uid).not.toBe(binding.metadata.uid)
})

test('two servers that start together both succeed', async () => {
  const view = new FakeClusterView()
  await Promise.all([reconcile(view), reconcile(view)])
  expect(await stored(view)).toHaveLength(defaultPolicy.length)
})

test('an error that is not a race ends the start', async () => {
  const view = new FakeClusterView()
  view.fail(new Error('disk full'))
  await expect(reconcile(view)).rejects.toThrow('disk full')
})
