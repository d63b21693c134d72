import { expect, test } from 'vitest'
import { plainAddress, sourceOf } from './source.ts'

test.each([
  ['10.0.0.1', '10.0.0.1', true],
  ['10.0.0.1', '10.0.0.2', false],
  ['10.0.0.1', '::ffff:10.0.0.1', true],
  ['2001:db8::1', '2001:db8::ffff:1', true],
  ['2001:db8::1', '2001:db8:0:1::1', false],
  ['::1', '0.0.0.0', false],
])('%s and %s are one source: %s', (one, other, isSame) => {
  expect(sourceOf(one) === sourceOf(other)).toBe(isSame)
})

test.each([
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['10.0.0.1', '10.0.0.1'],
  ['2001:db8::1', '2001:db8::1'],
  ['::ffff:a:1', '::ffff:a:1'],
  [undefined, ''],
])('%s is shown as %s', (address, shown) => {
  expect(plainAddress(address)).toBe(shown)
})
