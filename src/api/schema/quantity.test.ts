import { expect, test } from 'vitest'
import { canonicalQuantity } from './quantity.ts'

test.each([
  ['1000E', '1000E'],
  ['1000000000000000000000', '1000E'],
  ['1e300', '1e300'],
  ['16Ei', '9223372036854775807'],
])('%s, which Kubernetes cannot show without loss, becomes %s', (sent, text) => {
  expect(canonicalQuantity(sent)).toEqual({ text })
})

test('a number with very many digits is refused at once', () => {
  expect(canonicalQuantity('1'.repeat(1_000_000))).toEqual({
    problem: 'unable to parse numeric part of quantity',
  })
  expect(canonicalQuantity(`${'1'.repeat(1_000_000)}!`)).toMatchObject({
    problem: expect.stringMatching(/^quantities must match/),
  })
  expect(canonicalQuantity('1e999999999')).toEqual({
    problem: "unable to parse quantity's suffix",
  })
})
