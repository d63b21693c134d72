import { expect, test } from 'vitest'
import type { KubeObject, ProxyTarget } from '../../core/index.ts'
import { serviceBackend, type TargetRules } from './target.ts'

const pod = (ip: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'n' },
  spec: { containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] },
  status: { podIP: ip, podIPs: [{ ip }] },
})
const service: KubeObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'n' },
  spec: { ports: [{ port: 80 }], ipFamilies: ['IPv6', 'IPv4'] },
}
const slice = (addressType: string, ...ips: string[]): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: `s-${addressType}`, namespace: 'n' },
  addressType,
  ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  endpoints: ips.map((ip) => ({
    addresses: [ip],
    targetRef: { kind: 'Pod', namespace: 'n', name: 'web' },
  })),
})
const viewOf = (slices: KubeObject[], podNow: () => KubeObject): TargetRules => ({
  targets: { get: async () => podNow(), slices: async () => slices },
  isAllowedTarget: () => true,
})
const target: ProxyTarget = {
  resource: 'services',
  namespace: 'n',
  name: 'web',
  port: '',
  scheme: '',
}
const signal = new AbortController().signal

test('the address that was checked is the one that is dialled, and never a name [ADDON-T53]', async () => {
  const answers = [pod('10.0.0.1'), pod('127.0.0.1')]
  const view = viewOf([slice('IPv4', '10.0.0.1')], () => answers.shift() ?? pod('127.0.0.1'))
  const backend = await serviceBackend(view, target, service, signal)
  expect(backend).toEqual({ scheme: 'http', host: '10.0.0.1', port: 8080 })
  const named = viewOf([slice('FQDN', 'localhost')], () => pod('localhost'))
  await expect(serviceBackend(named, target, service, signal)).rejects.toThrow('no endpoints')
})

test('the first family of the Service comes first, and all its endpoints take turns', async () => {
  const dual = (): KubeObject => ({
    ...pod(''),
    status: { podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }, { ip: 'fd00::2' }] },
  })
  const view = viewOf([slice('IPv4', '10.0.0.1'), slice('IPv6', 'fd00::1', 'fd00::2')], dual)
  const hosts = new Set<string>()
  for (let count = 0; count < 100; count++)
    hosts.add((await serviceBackend(view, target, service, signal)).host)
  expect(hosts).toEqual(new Set(['fd00::1', 'fd00::2']))
})

test.each(['', 'MIIB', '-----BEGIN CERTIFICATE REQUEST-----'])(
  'the CA %j of a backend is none, and is not made up for by those of the machine [ADDON-R44]',
  async (ca) => {
    const annotated = {
      ...service,
      metadata: { ...service.metadata, annotations: { 'sallyport.dev/backend-ca': ca } },
    }
    const secure: ProxyTarget = { ...target, scheme: 'https' }
    const view = viewOf([slice('IPv4', '10.0.0.1')], () => pod('10.0.0.1'))
    await expect(serviceBackend(view, secure, annotated, signal)).rejects.toThrow(
      'service "web" has no CA in its annotation sallyport.dev/backend-ca',
    )
  },
)

test('the name of a backend that is left empty is that of its Service [ADDON-R44]', async () => {
  const annotations = {
    'sallyport.dev/backend-ca': '-----BEGIN CERTIFICATE-----',
    'sallyport.dev/backend-server-name': '',
  }
  const annotated = { ...service, metadata: { ...service.metadata, annotations } }
  const secure: ProxyTarget = { ...target, scheme: 'https' }
  const view = viewOf([slice('IPv4', '10.0.0.1')], () => pod('10.0.0.1'))
  const { trust } = await serviceBackend(view, secure, annotated, signal)
  expect(trust?.serverName).toBe('web.n.svc')
})
