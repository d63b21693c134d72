import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressTest, isLoopback } from './address-rules.ts'

const everybody = [
  '1.1.1.1',
  '93.184.216.34',
  '2606:4700:4700::1111',
  '::ffff:1.1.1.1',
  '64:ff9b::1.1.1.1',
]
const behind = [
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '127.0.0.1',
  '127.8.8.8',
  '::1',
  'fd12:3456::1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  '::ffff:0:127.0.0.1',
  '64:ff9b::10.0.0.1',
]
const nobody = [
  '0.0.0.0',
  '169.254.169.254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::ffff:0:169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '224.0.0.1',
  '255.255.255.255',
  '240.0.0.1',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
  '2002:7f00:1::',
  '2001:0:1::1',
  '100.100.100.200',
  '168.63.129.16',
  'fd00:42::42',
  'fd00:c1::a9fe:a9fe',
  'fd00:ec2::254',
  'fd20:ce::254',
  'not-an-address',
  '',
]

describe('where documents may be fetched from [ISS-P2]', () => {
  const usual = addressTest(false)
  const any = addressTest(true)
  test.each(everybody)('%s is open to all', (address) => {
    expect([usual(address), any(address)]).toEqual([true, true])
  })
  test.each(behind)('%s only if private addresses are allowed', (address) => {
    expect([usual(address), any(address)]).toEqual([false, true])
  })
  test.each(nobody)('%s never', (address) => {
    expect([usual(address), any(address)]).toEqual([false, false])
  })
  test('the old form of IPv4 in IPv6 counts as what it means', () => {
    expect([usual('::127.0.0.1'), usual('::7f00:1')]).toEqual([false, false])
  })

  test('ranges that are named are allowed, and nothing beside them', () => {
    const some = addressTest(['10.1.0.0/16', 'fd00:ec2::254/128'])
    expect(['10.1.9.9', '::ffff:10.1.9.9', 'fd00:ec2::254'].map(some)).toEqual([true, true, true])
    expect(['10.2.0.1', '127.0.0.1', '169.254.1.1'].map(some)).toEqual([false, false, false])
  })

  test.each(['10.0.0.0', '10.0.0.0/33', 'x/8', '::1/129', ''])('%j is no range', (range) => {
    expect(() => addressTest([range])).toThrow(TypeError)
  })
})

test('every spelling of an address counts as the same', () => {
  const usual = addressTest(false)
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 })
  const spellings = (parts: readonly number[]): string[] => {
    const hex = parts.map((part) => part.toString(16))
    const long = parts.map((part) => part.toString(16).padStart(4, '0')).join(':')
    const [g = 0, h = 0] = parts.slice(6)
    const ipv4 = [g >> 8, g & 255, h >> 8, h & 255].join('.')
    const short = new URL(`http://[${hex.join(':')}]`).hostname.slice(1, -1)
    return [hex.join(':'), long, long.toUpperCase(), `${hex.slice(0, 6).join(':')}:${ipv4}`, short]
  }
  fc.assert(
    fc.property(groups, (parts) => {
      expect(new Set(spellings(parts).map(usual)).size).toBe(1)
    }),
  )
  const inner = fc.tuple(fc.constantFrom('::ffff:', '64:ff9b::', '::'), fc.ipV4())
  fc.assert(
    fc.property(inner, ([prefix, address]) => {
      if (prefix === '::' && address.startsWith('0.0.')) return
      expect(usual(`${prefix}${address}`)).toBe(usual(address))
    }),
  )
})

test('loopback is 127.0.0.0/8 and ::1, in every spelling', () => {
  expect(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'].map(isLoopback)).not.toContain(false)
  expect(['128.0.0.1', '::2', 'localhost', '0.0.0.0'].map(isLoopback)).not.toContain(true)
})
