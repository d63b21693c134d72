import { expect, test } from 'vitest'
import { isExtendedResource, isWhole, quantityNanos } from './quantities.ts'

const unit = 10n ** 9n

test.each([
  ['0', 0n],
  ['1', unit],
  [2, 2n * unit],
  ['500m', unit / 2n],
  ['1.5', (3n * unit) / 2n],
  ['.5', unit / 2n],
  ['1Ki', 1024n * unit],
  ['1.5Gi', 1536n * 1024n * 1024n * unit],
  ['2e3', 2000n * unit],
  ['2E-3', unit / 500n],
  ['1E', 10n ** 18n * unit],
  ['-3', -3n * unit],
  ['1n', 1n],
  ['0.0000000001', 1n],
])('%j is %d billionths', (text, nanos) => {
  expect(quantityNanos(text)).toBe(nanos)
})

test.each(['', 'm', '1x', '1 Gi', 'NaN', '1e1000000', '9'.repeat(200), undefined, {}])(
  '%j is no amount',
  (text) => {
    expect(quantityNanos(text)).toBeUndefined()
  },
)

test('an amount is whole when it has no fraction', () => {
  expect(isWhole(quantityNanos('2000m')!)).toBe(true)
  expect(isWhole(quantityNanos('2001m')!)).toBe(false)
})

test.each([
  ['example.com/gpu', true],
  ['cpu', false],
  ['kubernetes.io/x', false],
  ['requests.example.com/gpu', false],
  ['a/b/c', false],
])('%s is an extended resource: %s', (name, isExtended) => {
  expect(isExtendedResource(name)).toBe(isExtended)
})
