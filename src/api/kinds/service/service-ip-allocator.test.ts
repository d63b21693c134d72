import { describe, expect, test } from 'vitest'
import { createIpAllocator, firstServiceAddress, problemOfServiceRange } from './ip-allocator.ts'

const lowest = () => 0n

describe('a range of service addresses [GND-R48]', () => {
  test('gives each address once until it is used up', () => {
    const allocator = createIpAllocator('10.0.0.0/28')
    const given = Array.from({ length: 13 }, () => allocator.allocate())
    // Of 16 addresses the network's, the broadcast and that of default/kubernetes are not given.
    expect(new Set(given).size).toBe(13)
    expect(given).not.toContain('10.0.0.0')
    expect(given).not.toContain('10.0.0.1')
    expect(given).not.toContain('10.0.0.15')
    expect(allocator.allocate()).toBeUndefined()
  })

  test('gives a released address again', () => {
    const allocator = createIpAllocator('10.0.0.0/30')
    expect(allocator.allocate()).toBe('10.0.0.2')
    expect(allocator.allocate()).toBeUndefined()
    allocator.release('10.0.0.2')
    expect(allocator.allocate()).toBe('10.0.0.2')
  })

  test('leaves the low end to those who ask by name', () => {
    const allocator = createIpAllocator('10.96.0.0/12', lowest)
    expect(allocator.allocate()).toBe('10.96.1.1')
    expect(allocator.allocate()).toBe('10.96.1.2')
  })

  test('takes the low end when nothing else is left', () => {
    const allocator = createIpAllocator('10.0.0.0/27', lowest)
    const given = Array.from({ length: 29 }, () => allocator.allocate())
    expect(given[0]).toBe('10.0.0.17')
    expect(given.at(-1)).toBe('10.0.0.16')
    expect(allocator.allocate()).toBeUndefined()
  })

  test.each([
    ['10.0.0.1', 'ok'],
    ['10.0.0.14', 'ok'],
    ['10.0.0.0', 'out-of-range'],
    ['10.0.0.15', 'out-of-range'],
    ['10.0.1.1', 'out-of-range'],
    ['::10.0.0.1', 'out-of-range'],
    ['x', 'out-of-range'],
  ])('%s asked for by name is %s', (ip, outcome) => {
    const allocator = createIpAllocator('10.0.0.0/28')
    expect(allocator.take(ip)).toBe(outcome)
    expect(allocator.contains(ip)).toBe(outcome === 'ok')
  })

  test('an address is taken once, however it is spelled', () => {
    const allocator = createIpAllocator('fd00::/108')
    expect(allocator.take('fd00::a')).toBe('ok')
    expect(allocator.take('FD00:0::000A')).toBe('taken')
  })

  test('of IPv6 the last address is as good as any', () => {
    const allocator = createIpAllocator('fd00::/126')
    expect(new Set([allocator.allocate(), allocator.allocate()])).toEqual(
      new Set(['fd00::2', 'fd00::3']),
    )
    expect(allocator.allocate()).toBeUndefined()
  })

  test('a range too large to count is no slower', () => {
    const allocator = createIpAllocator('fd00::/64')
    const given = Array.from({ length: 1000 }, () => allocator.allocate())
    expect(new Set(given).size).toBe(1000)
  })

  test.each(['x', '10.0.0.1/28', '10.0.0.0/31', '10.0.0.0/32', 'fd00::/128'])(
    '%s is no range to allocate from',
    (cidr) => {
      expect(() => createIpAllocator(cidr)).toThrow(TypeError)
      expect(problemOfServiceRange(cidr)).toContain(cidr)
    },
  )

  test.each([
    ['10.96.0.0/12', '10.96.0.1'],
    ['10.0.3.252/30', '10.0.3.253'],
    ['fd00::/108', 'fd00::1'],
    ['fd00:0:0:0:0:0:1:0/112', 'fd00::1:1'],
  ])('of %s the API itself has %s', (cidr, address) => {
    expect(problemOfServiceRange(cidr)).toBeUndefined()
    expect(firstServiceAddress(cidr)).toBe(address)
  })
})
