import { BlockList, isIP, isIPv4 } from 'node:net'

/** Addresses that documents are never fetched from: no issuer lives there, but metadata services of clouds do. */
const never = listOf([
  '0.0.0.0/8',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '::/128',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fd00:42::42/128',
  'fd00:c1::a9fe:a9fe/128',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
])

/** Addresses of this machine and of networks behind it. */
const inside = listOf([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '::1/128',
  'fc00::/7',
])

const loopback = listOf(['127.0.0.0/8', '::1/128'])

/** Which private addresses may be asked: none, all of this machine and its networks, or these ranges. */
export type PrivateAddresses = boolean | readonly string[]

/** Tells whether documents may be fetched from an address. */
export type AddressTest = (address: string) => boolean

/** The test for a choice of private addresses; throws TypeError for what is no range. */
export function addressTest(allowed: PrivateAddresses): AddressTest {
  const named = listOf(typeof allowed === 'boolean' ? [] : allowed)
  return (given) => {
    const address = plainAddress(given)
    if (address === undefined) return false
    if (contains(named, address)) return true
    if (contains(never, address)) return false
    return allowed === true || !contains(inside, address)
  }
}

/** Whether an address is one of this machine's own. */
export const isLoopback: AddressTest = (given) => {
  const address = plainAddress(given)
  return address !== undefined && contains(loopback, address)
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [, address = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(range) ?? []
    const family = isIP(address)
    if (family === 0 || Number(bits) > (family === 4 ? 32 : 128))
      throw new TypeError(`${JSON.stringify(range)} is not a range of addresses such as 10.0.0.0/8`)
    list.addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

const contains = (list: BlockList, address: string): boolean =>
  list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

const ipv4Within =
  /^(?:0:0:0:0:0:ffff|0:0:0:0:ffff:0|64:ff9b:0:0:0:0|0:0:0:0:0:0):([\da-f]{1,4}):([\da-f]{1,4})$/

/** The address that is really meant: IPv4 within IPv6 (mapped, translated, compatible, NAT64) is taken out of it. */
function plainAddress(address: string): string | undefined {
  const family = isIP(address)
  if (family === 0) return undefined
  if (family === 4) return address
  const whole = expanded(address)
  const [, high, low] = ipv4Within.exec(whole) ?? []
  if (high === undefined || low === undefined || whole === '0:0:0:0:0:0:0:1') return whole
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [a >> 8, a & 255, b >> 8, b & 255].join('.')
}

/** All eight groups of an IPv6 address, in one spelling. */
function expanded(address: string): string {
  const [plain = ''] = address.split('%')
  // The URL parser knows every spelling, also those that end in an IPv4 address.
  const short = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const [head = '', tail] = short.split('::')
  const groups = (text: string | undefined): string[] => (text ? text.split(':') : [])
  const [before, after] = [groups(head), groups(tail)]
  const missing = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array.from({ length: missing }, () => '0'), ...after].join(':')
}

/** Addresses at which no Pod and no node can be, but something of this machine or of its network may. */
const special = { 4: new BlockList(), 6: new BlockList() }
special[4].addSubnet('0.0.0.0', 8)
special[4].addSubnet('127.0.0.0', 8)
special[4].addSubnet('169.254.0.0', 16)
special[4].addSubnet('224.0.0.0', 3)
special[6].addSubnet('fe80::', 10, 'ipv6')
special[6].addSubnet('ff00::', 8, 'ipv6')
// What stands for an IPv4 address in IPv6 is refused whatever it stands for: a Pod's address is written plainly.
special[6].addSubnet('::', 96, 'ipv6')
special[6].addSubnet('::ffff:0:0', 96, 'ipv6')
special[6].addSubnet('64:ff9b::', 96, 'ipv6')
special[6].addSubnet('64:ff9b:1::', 48, 'ipv6')
special[6].addSubnet('2002::', 16, 'ipv6')

/** Verdicts on the addresses asked for last; a check makes objects, and every request asks. */
const verdicts = new Map<string, boolean>()
const maxVerdicts = 1_000

/** Whether an address may be that of a Pod or a node: an IP that is not loopback, link-local, multicast or unspecified. */
export function isDialable(address: string): boolean {
  const known = verdicts.get(address)
  if (known !== undefined) return known
  if (verdicts.size >= maxVerdicts) verdicts.clear()
  const verdict = check(address)
  verdicts.set(address, verdict)
  return verdict
}

function check(address: string): boolean {
  const family = isIP(address)
  if (family !== 4 && family !== 6) return false
  return !special[family].check(address, `ipv${family}`)
}
