import { isIP } from 'node:net'
import { expect, test } from 'vitest'
import { parseHostPort, parseIp, showHostPort } from './addresses.ts'

test.each([
  ['10.0.0.1:443', { host: '10.0.0.1', port: 443 }],
  ['Node-1.example:1', { host: 'node-1.example', port: 1 }],
  ['a_b:65535', { host: 'a_b', port: 65_535 }],
  ['[FD00::1]:443', { host: 'fd00::1', port: 443 }],
  ['[fe80::1%eth0]:443', { host: 'fe80::1%eth0', port: 443 }],
])('[TUN-U14] %s is a place', (text, expected) => {
  expect(parseHostPort(text)).toEqual(expected)
})

test.each([
  '',
  'a',
  'a:',
  ':1',
  'a:0',
  'a:65536',
  'a:1:2',
  '[a]:1',
  '[::1]',
  '::1',
  'a b:1',
  '-a:1',
])('[TUN-U14] %j is none', (text) => {
  expect(parseHostPort(text)).toBeUndefined()
})

test.each([
  ['none', '[fe80::1%]:1'],
  ['of two parts', '[fe80::1%a%b]:1'],
  ['that is a name elsewhere', '[fe80::1%a_b]:1'],
  ['with other characters', '[fe80::1%a;b]:1'],
  ['with a control character', '[fe80::1%a\u001b]:1'],
  ['that is too long', `[fe80::1%${'z'.repeat(64)}]:1`],
])('[SEC-R853] an IPv6 address with a zone %s is no place', (_name, text) => {
  expect(parseHostPort(text)).toBeUndefined()
})

test('IPv6 addresses are shown in brackets', () => {
  expect(showHostPort({ host: 'fd00::1', port: 1 })).toBe('[fd00::1]:1')
  expect(showHostPort({ host: 'fe80::1%eth0', port: 1 })).toBe('[fe80::1%eth0]:1')
  expect(showHostPort({ host: 'a', port: 1 })).toBe('a:1')
})

test('[SEC-R807] what is no address to admission is none to routes: a node could list it for that of another', () => {
  const zones = ['', '%', '%eth0', '%1', '%@', '% ', '%é', '%eth_0', '%%', '%eth0%eth0', '%a/b']
  const addresses = [
    '10.0.0.1',
    'fd00::1',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    'fd00::1 ',
    '[fd00::1]',
  ]
  for (const text of addresses.flatMap((address) => zones.map((zone) => `${address}${zone}`)))
    expect([text, parseIp(text) !== undefined]).toEqual([text, isIP(text) !== 0])
})
