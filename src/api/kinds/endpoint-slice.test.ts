import { expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import { toCause } from '../validation/index.ts'
import { endpointSlice } from './endpoint-slice.ts'
import { endpoints } from './endpoints.ts'

const slice = (addresses: string[][], metadata: object = {}): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'a', namespace: 'default', ...metadata },
  addressType: 'IPv4',
  endpoints: addresses.map((one) => ({ addresses: one })),
  ports: null,
})

test('endpoints on loopback are for our own controllers only', () => {
  const draft = slice([['127.0.0.1']])
  const older = { ...draft, subsets: [{ addresses: [{ ip: '127.0.0.1' }] }] }
  expect(endpointSlice.validate(draft)).toHaveLength(1)
  expect(endpointSlice.validate(draft, { loopbackEndpoints: true })).toEqual([])
  expect(endpoints.validate(older)).toHaveLength(1)
  expect(endpoints.validate(older, { loopbackEndpoints: true })).toEqual([])
})

test.each([
  [
    '1000 endpoints',
    slice(Array.from({ length: 1001 }, () => ['192.0.2.1'])),
    'endpoints: Too many: 1001: must have at most 1000 items',
  ],
  [
    '100 addresses',
    slice([Array.from({ length: 101 }, () => '192.0.2.1')]),
    'endpoints[0].addresses: Too many: 101: must have at most 100 items',
  ],
])('a slice has at most %s', (_limit, draft, refusal) => {
  const said = endpointSlice.validate(draft).map(toCause)
  expect(said.map((cause) => `${cause.field}: ${cause.message}`)).toEqual([refusal])
})

test.each([
  ['an address', slice([['192.0.2.2']]), true],
  ['a label', slice([['192.0.2.1']], { labels: { a: 'b' } }), true],
  ['an annotation', slice([['192.0.2.1']], { annotations: { a: 'b' } }), false],
])('%s that changes begins a new generation: %s', (_what, draft, isNew) => {
  expect(endpointSlice.isNewGeneration!(draft, slice([['192.0.2.1']]))).toBe(isNew)
})
