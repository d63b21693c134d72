import { expect, test } from 'vitest'
import { endpointSubsets, isOverCapacity, truncated } from './endpoints.ts'
import { type PodInfo, podInfo, serviceInfo } from './pod-and-service.ts'

const serviceOf = (spec: object) =>
  serviceInfo({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'n', uid: 's' },
    spec: { clusterIP: '10.96.0.1', ipFamilies: ['IPv4'], selector: { app: 'web' }, ...spec },
  })

function podOf(name: string, ip: string, change: Partial<PodInfo> = {}): PodInfo {
  const info = podInfo({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'n', uid: `uid-${name}` },
    spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 8080 }] }] },
    status: {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  })
  return { ...info, ...change }
}

const address = (name: string, ip: string) => ({
  ip,
  targetRef: { kind: 'Pod', namespace: 'n', name, uid: `uid-${name}` },
})

const web = serviceOf({ ports: [{ port: 80, targetPort: 'http' }] })
const port = { port: 8080, protocol: 'TCP' }

test.each([
  [
    'ready Pods',
    web,
    [podOf('a', '10.0.0.1')],
    [{ addresses: [address('a', '10.0.0.1')], ports: [port] }],
  ],
  [
    'Pods that are not ready apart',
    web,
    [podOf('b', '10.0.0.2', { ready: false }), podOf('a', '10.0.0.1')],
    [
      {
        addresses: [address('a', '10.0.0.1')],
        notReadyAddresses: [address('b', '10.0.0.2')],
        ports: [port],
      },
    ],
  ],
  ['no Pods that end', web, [podOf('a', '10.0.0.1', { terminating: true })], []],
  ['no Pods that have ended', web, [podOf('a', '10.0.0.1', { finished: true })], []],
  ['no Pods without an address', web, [podOf('a', '')], []],
  ['no Pods of another family', web, [podOf('a', 'fd00::1')], []],
  ['no Pods without the named port', web, [podOf('a', '10.0.0.1', { namedPorts: [] })], []],
  [
    'all Pods where they are published early',
    serviceOf({ ports: [{ port: 80, targetPort: 'http' }], publishNotReadyAddresses: true }),
    [podOf('a', '10.0.0.1', { ready: false, terminating: true })],
    [{ addresses: [address('a', '10.0.0.1')], ports: [port] }],
  ],
  [
    'one subset for ports of the same Pods',
    serviceOf({
      ports: [
        { name: 'x', port: 80, targetPort: 1 },
        { name: 'y', port: 81, targetPort: 2, protocol: 'UDP', appProtocol: 'h2c' },
      ],
    }),
    [podOf('a', '10.0.0.1')],
    [
      {
        addresses: [address('a', '10.0.0.1')],
        ports: [
          { name: 'x', port: 1, protocol: 'TCP' },
          { name: 'y', port: 2, protocol: 'UDP', appProtocol: 'h2c' },
        ],
      },
    ],
  ],
  [
    'several subsets where a named port differs',
    web,
    [
      podOf('a', '10.0.0.1'),
      podOf('b', '10.0.0.2', { namedPorts: [{ name: 'http', protocol: 'TCP', port: 9090 }] }),
    ],
    [
      { addresses: [address('a', '10.0.0.1')], ports: [port] },
      { addresses: [address('b', '10.0.0.2')], ports: [{ port: 9090, protocol: 'TCP' }] },
    ],
  ],
  [
    'addresses without ports for a headless Service without ports',
    serviceOf({ clusterIP: 'None' }),
    [podOf('a', '10.0.0.1')],
    [{ addresses: [address('a', '10.0.0.1')] }],
  ],
])('Endpoints have %s [GND-R51]', (_, service, pods, subsets) => {
  expect(endpointSubsets(service, pods)).toEqual(subsets)
  expect(endpointSubsets(service, pods.toReversed())).toEqual(subsets)
})

test('more than 1000 addresses are cut, those that are not ready first', () => {
  const pods = Array.from({ length: 1500 }, (_, index) =>
    podOf(`p${index}`, `10.0.${index >> 8}.${index & 255}`, { ready: index < 600 }),
  )
  const subsets = endpointSubsets(web, pods)
  expect(isOverCapacity(subsets)).toBe(true)
  const [cut] = truncated(subsets)
  expect(cut?.addresses).toHaveLength(600)
  expect(cut?.notReadyAddresses).toHaveLength(400)
})

test('subsets that are small enough stay whole', () => {
  const subsets = endpointSubsets(web, [podOf('a', '10.0.0.1')])
  expect(isOverCapacity(subsets)).toBe(false)
  expect(truncated(subsets)).toEqual(subsets)
})
