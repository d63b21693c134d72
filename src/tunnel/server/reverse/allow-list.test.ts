import { expect, test } from 'vitest'
import { AllowList } from './allow-list.ts'

const list = new AllowList(['API.example.com:6443', '10.0.0.1:443', '[fd00::1]:6443'])

test.each([
  ['the same words', '10.0.0.1:443'],
  ['a name in other case', 'api.EXAMPLE.com:6443'],
  ['a name with its final dot', 'api.example.com.:6443'],
  ['IPv6 in brackets', '[fd00::1]:6443'],
  ['IPv6 written otherwise', '[FD00:0:0::0001]:6443'],
])('[TUN-R20] %s is allowed', (_name, address) => {
  expect(list.find(address)).toBeDefined()
})

test.each([
  ['another port', '10.0.0.1:444'],
  ['another host', '10.0.0.2:443'],
  ['a longer name', 'x.api.example.com:6443'],
  ['a shorter name', 'example.com:6443'],
  ['IPv6 without brackets', 'fd00::1:6443'],
  ['a port with a leading zero is the same port, but a letter is none', '10.0.0.1:44x'],
  ['an address in another base', '0x0a000001:443'],
  ['a number for an address', '167772161:443'],
  ['nothing', ''],
  ['spaces around it', ' 10.0.0.1:443'],
])('[TUN-R20] %s is not allowed', (_name, address) => {
  expect(list.find(address)).toBeUndefined()
})

test('[TUN-R20] an empty list allows nothing', () => {
  expect(new AllowList([]).find('10.0.0.1:443')).toBeUndefined()
})
