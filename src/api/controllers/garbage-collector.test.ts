import { setImmediate as immediately } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  ApiError,
  type KubeObject,
  type OwnerReference,
  silentLogger,
  systemClock,
} from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { clusterRole, configMap, secret } from '../kinds/index.ts'
import { createGarbageCollector } from './garbage-collector.ts'
import { allKinds, LocalCluster } from './local-cluster.suite.ts'
import { runController } from './run-controller.ts'

const inTeam = (name: string) => ({ namespace: 'team', name })

async function running(): Promise<LocalCluster> {
  const cluster = await LocalCluster.open('team', 'other')
  cluster.run(createGarbageCollector({ view: cluster.view, kinds: allKinds }))
  return cluster
}

const ownerOf = (owner: KubeObject, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name,
  uid: owner.metadata.uid!,
  ...more,
})

const make = (
  cluster: LocalCluster,
  kind: 'ConfigMap' | 'Secret',
  name: string,
  ...ownerReferences: OwnerReference[]
): Promise<KubeObject> =>
  cluster.create({
    apiVersion: 'v1',
    kind,
    metadata: { name, namespace: 'team', ownerReferences },
  })

/** Everything that came before this has been looked at once its marker object is collected. */
async function settled(cluster: LocalCluster): Promise<void> {
  const dead = { apiVersion: 'v1', kind: 'ConfigMap', name: 'never-was', uid: 'none' }
  await make(cluster, 'ConfigMap', 'marker', dead)
  await cluster.untilGone(configMap.kind, inTeam('marker'))
}

/** Tells when it was asked for an object. */
class WatchedClusterView extends FakeClusterView {
  readonly #waiting = new Map<string, () => void>()

  asked(name: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(name, resolve))
  }

  override async get(...args: Parameters<FakeClusterView['get']>) {
    const found = await super.get(...args)
    this.#waiting.get(args[1].name)?.()
    return found
  }
}

describe('in the background', () => {
  test('a name with spaces is a name like any other', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    const role = { namespace: 'team', name: 'read only' }
    await cluster.create({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { ...role, ownerReferences: [ownerOf(owner)] },
      rules: [],
    })
    await cluster.delete(configMap.kind, inTeam('owner'), 'Background')
    const roles = { ...clusterRole.kind, resource: 'roles', namespaced: true }
    await cluster.untilGone(roles, role)
    expect(await cluster.get(roles, role)).toBeUndefined()
  })

  test('dependents follow their owner, and theirs follow them [GND-R52]', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    const child = await make(cluster, 'Secret', 'child', ownerOf(owner))
    await make(cluster, 'Secret', 'grandchild', ownerOf(child))
    await make(cluster, 'Secret', 'bystander')
    await settled(cluster)
    expect(await cluster.list(secret.kind, { namespace: 'team' })).toHaveLength(3)
    await cluster.delete(configMap.kind, inTeam('owner'), 'Background')
    await cluster.untilGone(secret.kind, inTeam('child'))
    await cluster.untilGone(secret.kind, inTeam('grandchild'))
    expect(await cluster.get(secret.kind, inTeam('bystander'))).toBeDefined()
  })

  test('a dependent with another owner only loses the dead reference [GND-R52]', async () => {
    const cluster = await running()
    const first = await make(cluster, 'ConfigMap', 'first')
    const second = await make(cluster, 'ConfigMap', 'second')
    await make(cluster, 'Secret', 'child', ownerOf(first), ownerOf(second))
    await cluster.delete(configMap.kind, inTeam('first'))
    const child = await cluster.untilObject(
      secret.kind,
      inTeam('child'),
      ({ metadata }) => metadata.ownerReferences?.length === 1,
    )
    expect(child.metadata.ownerReferences).toEqual([ownerOf(second)])
  })

  test('an owner of the same name but another uid is not the owner [GND-R52]', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await make(cluster, 'Secret', 'stranger', ownerOf(owner, { uid: 'another' }))
    await cluster.untilGone(secret.kind, inTeam('stranger'))
    expect(await cluster.get(configMap.kind, inTeam('owner'))).toBeDefined()
  })

  test('what was left behind before the start is collected', async () => {
    const cluster = await LocalCluster.open('team')
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await make(cluster, 'Secret', 'child', ownerOf(owner))
    await cluster.delete(configMap.kind, inTeam('owner'))
    cluster.run(createGarbageCollector({ view: cluster.view, kinds: allKinds }))
    await cluster.untilGone(secret.kind, inTeam('child'))
    expect(cluster.writes).toContain('delete Secret child')
  })

  test('an owner that went while nobody watched is noticed', async () => {
    const owner: KubeObject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'owner', namespace: 'team', uid: 'u' },
    }
    const child = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'child', namespace: 'team', ownerReferences: [ownerOf(owner)] },
    }
    const view = new WatchedClusterView({ objects: [owner, child] })
    const stop = new AbortController()
    const { signal } = stop
    const running = runController(
      createGarbageCollector({ view, kinds: [configMap.kind, secret.kind] }),
      { view, log: silentLogger, clock: systemClock },
      signal,
    )
    await view.asked('owner')
    view.cutWatches(new ApiError('Expired', 'too old resource version'))
    while (view.openWatches > 0) await immediately()
    await view.write('delete', owner, {}, signal)
    view.compact()
    const { resourceVersion: from } = await view.list(secret.kind, {}, signal)
    for await (const { type } of view.watch(secret.kind, { from }, signal)) {
      if (type === 'DELETED') break
    }
    expect(await view.get(secret.kind, inTeam('child'), signal)).toBeUndefined()
    stop.abort()
    await running
  })

  test('a finalizer of a dependent is honoured', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await make(cluster, 'Secret', 'child', ownerOf(owner))
    await cluster.change(secret.kind, inTeam('child'), ({ metadata }) => {
      metadata.finalizers = ['example.com/hold']
    })
    await cluster.delete(configMap.kind, inTeam('owner'))
    const held = await cluster.untilObject(
      secret.kind,
      inTeam('child'),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    )
    expect(held.metadata.finalizers).toEqual(['example.com/hold'])
  })
})

describe('across namespaces', () => {
  test('an owner in another namespace does not count [GND-R52]', async () => {
    const cluster = await running()
    const elsewhere = await cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'owner', namespace: 'other' },
    })
    await make(cluster, 'Secret', 'child', ownerOf(elsewhere))
    await cluster.untilGone(secret.kind, inTeam('child'))
    expect(cluster.writes).toContain('delete Secret child')
  })

  test('an owner outside of namespaces may own what is in them', async () => {
    const cluster = await running()
    const role = await cluster.create({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'role' },
      rules: [],
    })
    await make(cluster, 'Secret', 'child', ownerOf(role))
    await settled(cluster)
    expect(await cluster.get(secret.kind, inTeam('child'))).toBeDefined()
    await cluster.delete(clusterRole.kind, { name: 'role' })
    await cluster.untilGone(secret.kind, inTeam('child'))
  })

  test('what is outside of namespaces is never collected for an owner inside one', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await cluster.create({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'role', ownerReferences: [ownerOf(owner)] },
      rules: [],
    })
    await cluster.delete(configMap.kind, inTeam('owner'))
    await settled(cluster)
    expect(await cluster.get(clusterRole.kind, { name: 'role' })).toBeDefined()
  })

  test('an owner of a kind that is not served here is taken to exist', async () => {
    const cluster = await running()
    const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'u' }
    await make(cluster, 'Secret', 'child', reference)
    await settled(cluster)
    expect(await cluster.get(secret.kind, inTeam('child'))).toBeDefined()
  })
})

describe('orphaning', () => {
  test('dependents lose the reference and stay, then the owner goes [GND-R52]', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await make(cluster, 'Secret', 'child', ownerOf(owner))
    await make(cluster, 'Secret', 'second', ownerOf(owner))
    await cluster.delete(configMap.kind, inTeam('owner'), 'Orphan')
    await cluster.untilGone(configMap.kind, inTeam('owner'))
    await settled(cluster)
    const left = await cluster.list(secret.kind, { namespace: 'team' })
    expect(left.map(({ metadata }) => metadata.name)).toEqual(['child', 'second'])
    expect(left.flatMap(({ metadata }) => metadata.ownerReferences ?? [])).toEqual([])
  })
})

describe('in the foreground', () => {
  test('the owner stays until the dependents that block it are gone [GND-R52]', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await make(cluster, 'Secret', 'child', ownerOf(owner, { blockOwnerDeletion: true }))
    await cluster.change(secret.kind, inTeam('child'), ({ metadata }) => {
      metadata.finalizers = ['example.com/hold']
    })
    await cluster.delete(configMap.kind, inTeam('owner'), 'Foreground')
    await cluster.untilObject(
      secret.kind,
      inTeam('child'),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    )
    await settled(cluster)
    expect((await cluster.get(configMap.kind, inTeam('owner')))?.metadata.finalizers).toEqual([
      'foregroundDeletion',
    ])
    await cluster.change(secret.kind, inTeam('child'), ({ metadata }) => {
      delete metadata.finalizers
    })
    await cluster.untilGone(configMap.kind, inTeam('owner'))
    expect(await cluster.get(secret.kind, inTeam('child'))).toBeUndefined()
  })

  test('an owner without dependents goes at once', async () => {
    const cluster = await running()
    await make(cluster, 'ConfigMap', 'owner')
    await cluster.delete(configMap.kind, inTeam('owner'), 'Foreground')
    await cluster.untilGone(configMap.kind, inTeam('owner'))
    expect(cluster.writes).toContain('update ConfigMap owner')
  })

  test('dependents that do not block are deleted without waiting for them', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    await make(cluster, 'Secret', 'child', ownerOf(owner))
    await cluster.change(secret.kind, inTeam('child'), ({ metadata }) => {
      metadata.finalizers = ['example.com/hold']
    })
    await cluster.delete(configMap.kind, inTeam('owner'), 'Foreground')
    await cluster.untilGone(configMap.kind, inTeam('owner'))
    const child = await cluster.get(secret.kind, inTeam('child'))
    expect(child?.metadata.deletionTimestamp).toBeDefined()
  })

  test('a chain goes from its end to its beginning [GND-R52]', async () => {
    const cluster = await running()
    const block = { blockOwnerDeletion: true }
    const owner = await make(cluster, 'ConfigMap', 'owner')
    const child = await make(cluster, 'ConfigMap', 'child', ownerOf(owner, block))
    await make(cluster, 'ConfigMap', 'grandchild', ownerOf(child, block))
    const gone: string[] = []
    const order = cluster.until(configMap.kind, { namespace: 'team' }, (objects) => {
      const names = new Set(objects.map(({ metadata }) => metadata.name))
      for (const name of ['owner', 'child', 'grandchild']) {
        if (!names.has(name) && !gone.includes(name)) gone.push(name)
      }
      return gone.length === 3
    })
    await cluster.delete(configMap.kind, inTeam('owner'), 'Foreground')
    await order
    expect(gone).toEqual(['grandchild', 'child', 'owner'])
  })

  test('a circle of owners goes as well', async () => {
    const cluster = await running()
    const block = { blockOwnerDeletion: true }
    const a = await make(cluster, 'ConfigMap', 'a')
    const b = await make(cluster, 'ConfigMap', 'b', ownerOf(a, block))
    await cluster.change(configMap.kind, inTeam('a'), ({ metadata }) => {
      metadata.ownerReferences = [ownerOf(b, block)]
    })
    await cluster.delete(configMap.kind, inTeam('a'), 'Foreground')
    await cluster.untilGone(configMap.kind, inTeam('a'))
    await cluster.untilGone(configMap.kind, inTeam('b'))
    expect(await cluster.list(configMap.kind, { namespace: 'team' })).toEqual([])
  })

  test('a dependent with another owner is set free', async () => {
    const cluster = await running()
    const owner = await make(cluster, 'ConfigMap', 'owner')
    const other = await make(cluster, 'ConfigMap', 'other')
    const refs = [ownerOf(owner, { blockOwnerDeletion: true }), ownerOf(other)]
    await make(cluster, 'Secret', 'child', ...refs)
    await cluster.delete(configMap.kind, inTeam('owner'), 'Foreground')
    await cluster.untilGone(configMap.kind, inTeam('owner'))
    const child = await cluster.get(secret.kind, inTeam('child'))
    expect(child?.metadata.ownerReferences).toEqual([ownerOf(other)])
  })
})
