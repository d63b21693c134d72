import { expect, test } from 'vitest'
import { cidrProblems, formatCidr, parseCidr } from './ip.ts'

test.each(['10.96.0.0/12', '0.0.0.0/0', '192.0.2.1/32', 'fd00::/108', '::/0'])(
  '%s is a range',
  (text) => {
    expect(cidrProblems(text)).toEqual([])
    expect(formatCidr(parseCidr(text)!)).toBe(text)
  },
)

const noCidr = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

test.each([
  ['', noCidr],
  ['10.0.0.0', noCidr],
  ['10.0.0.0/', noCidr],
  ['10.0.0.0/33', noCidr],
  ['10.0.0.0/8/8', noCidr],
  ['10.0.0.0/-1', noCidr],
  ['::/129', noCidr],
  ['010.0.0.0/8', 'must not have leading 0s in IP or prefix length'],
  ['10.0.0.0/08', 'must not have leading 0s in IP or prefix length'],
  ['::ffff:10.0.0.0/104', 'must not have an IPv4-mapped IPv6 address'],
  ['10.0.0.1/8', 'must not have bits set beyond the prefix length'],
])('%j is refused: %s [GND-R62]', (text, problem) => {
  expect(cidrProblems(text)).toEqual([problem])
  expect(parseCidr(text)).toBeUndefined()
})
