import { expect, test } from 'vitest'
import { LocalCluster } from '../../api/controllers/local-cluster.suite.ts'
import { isRecord, wellKnownKinds } from '../../core/index.ts'
import { dnsAddressIn, ensureJoinConfig, type JoinConfig } from './kubeadm-config.ts'

const config: JoinConfig = {
  endpoint: '[fd00::1]:6443',
  kubernetesVersion: 'v1.36.3',
  serviceRanges: ['10.96.0.0/16', 'fd01::/108'],
  dnsAddress: '10.96.0.10',
}

async function documentIn(cluster: LocalCluster, name: string): Promise<unknown> {
  const found = await cluster.get(wellKnownKinds.configMap, { namespace: 'kube-system', name })
  const data = found?.['data']
  return isRecord(data) ? Object.values(data).join() : undefined
}

test('[DISC-S12] what kubeadm reads says how this cluster is', async () => {
  const cluster = await LocalCluster.open('kube-system')
  await ensureJoinConfig(cluster.view, config, cluster.signal)
  const about = await documentIn(cluster, 'kubeadm-config')
  expect(about).toContain('controlPlaneEndpoint: "[fd00::1]:6443"\n')
  expect(about).toContain('serviceSubnet: "10.96.0.0/16,fd01::/108"\n')
  expect(about).toContain('kubernetesVersion: v1.36.3\n')
  expect(await documentIn(cluster, 'kubelet-config')).toContain('clusterDNS:\n- "10.96.0.10"\n')
  expect(await documentIn(cluster, 'kube-proxy')).toContain('kind: KubeProxyConfiguration\n')
})

test('[DISC-S12] it is written again when the cluster has moved, and only then', async () => {
  const cluster = await LocalCluster.open('kube-system')
  await ensureJoinConfig(cluster.view, config, cluster.signal)
  const writes = cluster.writes.length
  await ensureJoinConfig(cluster.view, config, cluster.signal)
  expect(cluster.writes).toHaveLength(writes)
  await ensureJoinConfig(cluster.view, { ...config, endpoint: 'moved:6443' }, cluster.signal)
  expect(cluster.writes.slice(writes)).toEqual(['update ConfigMap kubeadm-config'])
  expect(await documentIn(cluster, 'kubeadm-config')).toContain('"moved:6443"')
})

test('[DISC-S12] what an operator has changed stays', async () => {
  const cluster = await LocalCluster.open('kube-system')
  await ensureJoinConfig(cluster.view, config, cluster.signal)
  const key = { namespace: 'kube-system', name: 'kubeadm-config' }
  await cluster.change(wellKnownKinds.configMap, key, (object) =>
    Object.assign(object, { data: { ClusterConfiguration: 'mine' } }),
  )
  await ensureJoinConfig(cluster.view, { ...config, endpoint: 'moved:6443' }, cluster.signal)
  expect(await documentIn(cluster, 'kubeadm-config')).toBe('mine')
})

test.each([
  ['10.96.0.1', '10.96.0.0/12', '10.96.0.10'],
  ['10.0.0.17', '10.0.0.16/28', '10.0.0.26'],
  ['10.0.0.9', '10.0.0.8/29', undefined],
  ['fd00::1', 'fd00::/108', 'fd00::a'],
  ['fd00::f1', 'fd00::f0/124', 'fd00::fa'],
  ['fd00::f1', 'fd00::f0/125', undefined],
])('the DNS service of %s in %s is %s', (first, range, wanted) => {
  expect(dnsAddressIn(first, range)).toBe(wanted)
})
