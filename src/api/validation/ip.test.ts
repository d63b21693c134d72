import { expect, test } from 'vitest'
import { canonicalIpProblems, endpointIpProblems, formatIp, ipProblems, parseIp } from './ip.ts'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::', '::'],
  ['::1', '::1'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['fe80::10:0', 'fe80::10:0'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['1::', '1::'],
  ['::ffff:1.2.3.4', '::ffff:102:304'],
])('%s in canonical form is %s', (text, canonical) => {
  expect(formatIp(parseIp(text)!)).toBe(canonical)
})

test.each([
  '',
  'x',
  '1.2.3',
  '1.2.3.4.5',
  '256.1.1.1',
  '01.2.3.4',
  'fe80::1%eth0',
  '1::2::3',
  '::1.2.3',
])('%j is no address', (text) => {
  expect(parseIp(text)).toBeUndefined()
})

test.each([
  ['1.2.3.4', []],
  ['2001:DB8::1', []],
  ['01.2.3.4', ['must not have leading 0s']],
  ['1.2.3.04', ['must not have leading 0s']],
  ['::ffff:1.2.3.4', ['must not be an IPv4-mapped IPv6 address']],
  ['x', ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
  ['0x1.2.3.4', ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
])('problems of %j are %j [GND-R62]', (text, problems) => {
  expect(ipProblems(text)).toEqual(problems)
})

test('where the canonical form is needed, another is refused and the right one named', () => {
  expect(canonicalIpProblems('2001:DB8::1')).toEqual(['must be in canonical form ("2001:db8::1")'])
  expect(canonicalIpProblems('2001:db8::1')).toEqual([])
})

test.each(['127.0.0.1', '127.255.0.1', '::1'])(
  '%s is an endpoint for our own controllers only',
  (ip) => {
    expect(endpointIpProblems(ip, false)).toEqual([
      'may not be in the loopback range (127.0.0.0/8, ::1/128)',
    ])
    expect(endpointIpProblems(ip, true)).toEqual([])
  },
)

test.each([
  '0.0.0.0',
  '169.254.169.254',
  'fe80::1',
  '224.0.0.1',
  'ff02::1',
  '::',
  'x',
  '127.0.0.01',
])('%s is an endpoint for nobody', (ip) => {
  expect(endpointIpProblems(ip, false)).toHaveLength(1)
})
