import { describe, expect, test } from 'vitest'
import type { KubeObject } from './kube-object.ts'
import { isWorkloadPlace, machineNameOf, workloadMark } from './workload-labels.ts'

const pod = (parts: Record<string, unknown> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', labels: { [workloadMark]: 'laptop' } },
  spec: { containers: [{ ports: [{ containerPort: 8080 }] }] },
  status: { podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }, { ip: '::1' }] },
  ...parts,
})

describe('a place of a workload', () => {
  test.each([
    ['its address and port', pod(), '127.0.0.1', 8080, true],
    ['its second address', pod(), '::1', 8080, true],
    ['a port that it does not declare', pod(), '127.0.0.1', 22, false],
    ['an address that it does not have', pod(), '127.0.0.2', 8080, false],
    ['a Pod without the mark', pod({ metadata: { name: 'a' } }), '127.0.0.1', 8080, false],
    ['a Pod without status', pod({ status: 'none' }), '127.0.0.1', 8080, false],
    ['a Pod without ports', pod({ spec: { containers: [{}, 'x'] } }), '127.0.0.1', 8080, false],
  ])('is %s [ISS-W6]', (_what, object, ip, port, expected) => {
    expect(isWorkloadPlace(object, { ip, port })).toBe(expected)
  })
})

test.each([
  ['system:sallyport:machine:a', ['system:sallyport:machines'], 'a'],
  ['system:sallyport:machine:', ['system:sallyport:machines'], ''],
  ['system:sallyport:machine:a', ['system:masters'], undefined],
  ['alice', ['system:sallyport:machines'], undefined],
])('the machine of %s in %j is %j [ISS-W6]', (username, groups, expected) => {
  expect(machineNameOf({ username, groups })).toBe(expected)
})
