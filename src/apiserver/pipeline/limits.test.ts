import { describe, expect, test } from 'vitest'
import { partyOf, socketBucket } from '../fairness/fairness.ts'
import { defaultRequestLimits } from '../limits.ts'
import { checkRequestSize } from './steps.ts'

describe('a request that is too large is refused [GND-R83]', () => {
  const { maxUrlLength, maxHeaderCount, maxHeaderBytes } = defaultRequestLimits
  test.each([
    ['URL', 414, { url: `/${'a'.repeat(maxUrlLength)}`, rawHeaders: [] }],
    ['headers by count', 431, { url: '/', rawHeaders: Array(2 * maxHeaderCount + 2).fill('a') }],
    ['headers by size', 431, { url: '/', rawHeaders: ['a', 'b'.repeat(maxHeaderBytes)] }],
  ])('%s: %i', (_name, httpCode, request) => {
    expect(() => checkRequestSize(request, defaultRequestLimits)).toThrow(
      expect.objectContaining({ httpCode }),
    )
  })

  test('one at the limit passes', () => {
    const request = {
      url: 'a'.repeat(maxUrlLength),
      rawHeaders: ['b'.repeat(maxHeaderBytes - 1), 'c'],
    }
    expect(() => checkRequestSize(request, defaultRequestLimits)).not.toThrow()
  })
})

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1:2', 'fe80:0:0:0'],
  ['', ''],
])('the party behind address %s is %s', (address, bucket) => {
  expect(socketBucket(address)).toBe(bucket)
})

test.each([
  ['ann', 'ann'],
  ['system:serviceaccount:team:a', 'system:serviceaccount:team'],
  ['system:serviceaccount:team:b', 'system:serviceaccount:team'],
  ['system:serviceaccount:team', 'system:serviceaccount:team'],
])('the party behind user %s is %s', (username, party) => {
  expect(partyOf(username)).toBe(party)
})
