import { randomUUID } from 'node:crypto'
import { LocalCluster } from '../../src/apiserver/backend/local.ts'
import { reconcileDefaultPolicy } from '../../src/authz/index.ts'
import { type KubeObject, Secret, silentLogger, systemClock } from '../../src/core/index.ts'
import { openMemoryStore } from '../../src/storage/index.ts'
import {
  type ClusterViewFixture,
  describeClusterView,
} from '../../src/testing/cluster-view.suite.ts'

const { signal } = new AbortController()
const token = new Secret('a-token-of-jane')
const keptChanges = 2_000

const namespace = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
})

async function open(): Promise<ClusterViewFixture> {
  const store = openMemoryStore({ history: { maxEvents: keptChanges, maxBytes: 64 * 1024 ** 2 } })
  const cluster = new LocalCluster({
    store,
    clock: systemClock,
    log: silentLogger,
    serviceCidrs: ['10.96.0.0/16'],
  })
  cluster.acceptWrites({
    admissions: [],
    authenticateToken: async (value) =>
      value === token.reveal()
        ? { user: { username: 'jane', groups: [] }, method: 'test' }
        : undefined,
  })
  const { view, rbac } = cluster
  for (const name of ['default', 'kube-system', 'kube-public'])
    await view.write('create', namespace(name), {}, signal)
  await reconcileDefaultPolicy({ view, log: silentLogger }, signal)
  await rbac.start()
  return {
    view,
    async close() {
      await rbac.stop(AbortSignal.timeout(1_000))
      await store.close()
    },
  }
}

describeClusterView('our registry', open, {
  token: () => ({ value: token.reveal(), username: 'jane' }),
  expiredVersion: async (view) => {
    const name = `expiring-${randomUUID()}`
    const first = await view.write('create', namespace(name), {}, signal)
    for (let round = 0; round <= keptChanges; round++) {
      const labels = { round: String(round) }
      const metadata = { name, labels }
      await view.write('update', { ...namespace(name), metadata }, {}, signal)
    }
    return String(first.metadata.resourceVersion)
  },
})
