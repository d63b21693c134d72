import { expect, test } from 'vitest'
import type { WorkloadPlan } from '../pod/pod-object.ts'
import { inClusterEnvironment, workloadEnvironment } from './child-process.ts'
import { inMountNamespace, noMountNamespace } from './mount-namespace.ts'

const plan: WorkloadPlan = {
  machine: 'laptop',
  namespace: 'shop',
  name: 'web-1',
  serviceAccount: 'web',
  labels: {},
  container: 'node',
  ip: '10.0.0.1',
  ports: [{ port: 8080 }, { port: 9090 }],
  tokens: [],
  tokenSeconds: 3_600,
}

test('a process is told what it is, and gets no credential of the machine [ISS-W4]', () => {
  const env = {
    PATH: '/bin',
    KUBECONFIG: 'machine',
    SALLYPORT_KUBECONFIG: 'machine',
    HOSTNAME: 'x',
  }
  expect(workloadEnvironment(env, plan, '/dir')).toEqual({
    PATH: '/bin',
    HOSTNAME: 'web-1',
    POD_NAME: 'web-1',
    POD_NAMESPACE: 'shop',
    POD_IP: '10.0.0.1',
    POD_SERVICE_ACCOUNT: 'web',
    SALLYPORT_SERVICE_ACCOUNT_DIR: '/dir',
    PORT: '8080',
  })
})

test.each([
  ['https://10.0.0.2:6443', '10.0.0.2', '6443', 'tcp://10.0.0.2:6443'],
  ['https://[fd00::1]:6443', 'fd00::1', '6443', 'tcp://[fd00::1]:6443'],
  ['https://api.example.com', 'api.example.com', '443', 'tcp://api.example.com:443'],
])('in-cluster clients find %s [ISS-W4]', (url, host, port, address) => {
  expect(inClusterEnvironment(new URL(url))).toMatchObject({
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
    KUBERNETES_PORT: address,
    [`KUBERNETES_PORT_${port}_TCP_ADDR`]: host,
  })
})

test.each(['https://10.0.0.2/clusters/a', 'http://10.0.0.2'])(
  '%s is none that in-cluster clients could find',
  (url) => {
    expect(() => inClusterEnvironment(new URL(url))).toThrow('host and port alone')
  },
)

test.each([
  ['darwin', undefined, 'on Linux only'],
  ['linux', 'unshare failed: Operation not permitted', 'unshare failed: Operation not permitted'],
])('without a mount namespace on %s the words say what to do [ISS-W5]', (platform, why, says) => {
  const failure = noMountNamespace(platform, why)
  expect(failure).toMatchObject({ code: 'NO_MOUNT_NAMESPACE', hint: expect.any(String) })
  expect(failure.message).toContain('/var/run/secrets/kubernetes.io/serviceaccount')
  expect(failure.message).toContain(says)
  expect(failure.hint).toContain('--no-in-cluster')
})

test('root needs no user namespace, others keep who they are [ISS-W4]', () => {
  const namespace = { source: '/a', stage: '/b', parent: 7 }
  const words = (isRoot: boolean) => inMountNamespace({ ...namespace, isRoot }, ['node', 'x y'])
  expect(words(true).slice(0, 3)).toEqual(['unshare', '--mount', '--'])
  expect(words(false)).toContain('--map-current-user')
  expect(words(false).slice(-5)).toEqual(['/a', '/b', '7', 'node', 'x y'])
})
