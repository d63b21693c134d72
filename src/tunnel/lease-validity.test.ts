import { expect, test } from 'vitest'
import { kubeMicroTime } from '../core/index.ts'
import { isValidLease } from './lease-validity.ts'

const now = Date.UTC(2026, 0, 1)

const renewed = (ago: number, seconds = 30): object => ({
  renewTime: kubeMicroTime(now - ago),
  leaseDurationSeconds: seconds,
})

test.each([
  ['renewed just now', renewed(0), true],
  ['renewed long ago', renewed(31_000), false],
  ['only acquired', { acquireTime: kubeMicroTime(now), leaseDurationSeconds: 30 }, true],
  [
    'acquired just now but renewed long ago',
    { ...renewed(60_000), acquireTime: kubeMicroTime(now) },
    false,
  ],
  ['without a duration', { renewTime: kubeMicroTime(now) }, false],
  ['without a time', { leaseDurationSeconds: 30 }, false],
])('[TUN-U12] a Lease %s', (_name, spec, expected) => {
  expect(
    isValidLease(
      { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'a' }, spec },
      now,
    ),
  ).toBe(expected)
})
