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
  ['an IPv4 address written as IPv6', '[::ffff:10.0.0.1]:443'],
  ['the same in hex', '[::ffff:a00:1]:443'],
  ['an IPv6 address with a zone', '[fd00::1%eth0]:6443'],
  ['a name with two final dots', 'api.example.com..:6443'],
  ['a name with a NUL', 'api.example.com\0.evil:6443'],
  ['a user before the host', 'x@10.0.0.1:443'],
  ['a port beyond the last', '10.0.0.1:65979'],
  ['a name that Unicode folds to it', 'ａpi.example.com:6443'],
  ['nothing', ''],
  ['spaces around it', ' 10.0.0.1:443'],
])('[TUN-R20] %s is not allowed', (_name, address) => {
  expect(list.find(address)).toBeUndefined()
})

test.each(['api.example.com.:6443', 'API.EXAMPLE.com:6443', '[FD00:0:0::0001]:6443'])(
  '[SEC-R808] %s is dialled as it is listed, not as it is asked for',
  (address) => {
    const listed = address.startsWith('[') ? 'fd00::1' : 'api.example.com'
    expect(list.find(address)).toEqual({ host: listed, port: 6443 })
  },
)

test('[TUN-R20] an empty list allows nothing', () => {
  expect(new AllowList([]).find('10.0.0.1:443')).toBeUndefined()
})
