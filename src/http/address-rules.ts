import { BlockList, isIP, isIPv4 } from 'node:net'
import { type AddressClass, platformAddresses, registeredAddresses } from './special-addresses.ts'

/** Decides by an IP address; false for everything that is none in its strict form. */
export type AddressTest = (address: string) => boolean

/** What an address is. */
interface ClassifiedAddress {
  readonly class: AddressClass
  /** The address in one spelling; the IPv4 address where IPv6 only carries one. */
  readonly plain: string
  /** Not written as what it is: IPv4 inside of IPv6, or with the zone of an interface. */
  readonly isDisguised: boolean
}

/**
 * Classifies an address; `undefined` if it is none. Only the strict forms count: `0177.1`, `0x7f000001` and other
 * spellings that a resolver would accept are names here, and what they resolve to is classified.
 */
export function classifyAddress(text: string): ClassifiedAddress | undefined {
  const family = isIP(text)
  if (family === 0) return undefined
  if (family === 4) return { class: classOf(text), plain: text, isDisguised: false }
  const [address = '', zone] = text.split('%')
  const groups = groupsOf(address)
  const inner = innerIpv4(groups)
  const plain = inner ?? groups.map((group) => group.toString(16)).join(':')
  const isDisguised = inner !== undefined || zone !== undefined
  return { class: isIsatap(groups) ? 'transition' : classOf(plain), plain, isDisguised }
}

/** Bits of the prefix of IPv4-mapped addresses. */
const mappedBits = 96

const tables = [...platformAddresses, ...registeredAddresses].map(({ range, class: kind }) => ({
  list: listOf([range]),
  class: kind,
}))

/** The class of the first row that has the address: platforms first, then the registries, narrow rows before wide. */
const classOf = (plain: string): AddressClass =>
  tables.find(({ list }) => contains(list, plain))?.class ?? 'public'

/** Prefixes of 96 bits behind which the IPv4 address itself is meant. */
const carriers = new Set([
  '0:0:0:0:0:ffff', // IPv4-mapped (RFC 4291)
  '0:0:0:0:ffff:0', // IPv4-translated (RFC 2765)
  '64:ff9b:0:0:0:0', // NAT64 (RFC 6052)
  '0:0:0:0:0:0', // IPv4-compatible (RFC 4291, deprecated)
])

/** The IPv4 address that an IPv6 address only carries. Relays (6to4, Teredo, …) have a class of their own. */
function innerIpv4(groups: readonly number[]): string | undefined {
  const [high = 0, low = 0] = groups.slice(6)
  const prefix = groups.slice(0, 6).map((group) => group.toString(16))
  if (!carriers.has(prefix.join(':'))) return undefined
  // `::` and `::1` are addresses of IPv6 itself.
  const isOwn = high === 0 && low <= 1 && groups.slice(0, 6).every((group) => group === 0)
  return isOwn ? undefined : [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** An interface identifier `0:5efe` or `200:5efe` in front of an IPv4 address (RFC 5214 §6.1). */
const isIsatap = ([, , , , fifth = 0, sixth = 0]: readonly number[]): boolean =>
  (fifth & ~0x0200) === 0 && sixth === 0x5efe

/** All eight groups of an IPv6 address without a zone. */
function groupsOf(address: string): number[] {
  // The URL parser knows every spelling, also those that end in an IPv4 address.
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = short.split('::')
  const numbers = (text: string | undefined): number[] =>
    text ? text.split(':').map((group) => Number.parseInt(group, 16)) : []
  const [before, after] = [numbers(head), numbers(tail)]
  const missing = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array.from({ length: missing }, () => 0), ...after]
}

/** Ranges by family. One list would take `::/0` for every IPv4 address as well: Node.js compares those as IPv4-mapped. */
type RangeLists = Readonly<Record<4 | 6, BlockList>>

function listOf(ranges: readonly string[]): RangeLists {
  const lists = { 4: new BlockList(), 6: new BlockList() }
  for (const range of ranges) {
    const [, address = '', suffix = ''] = /^([^/%]+)\/(\d{1,3})$/.exec(range) ?? []
    const isV4 = isIPv4(address)
    if (isIP(address) === 0 || Number(suffix) > (isV4 ? 32 : 128))
      throw new TypeError(`${JSON.stringify(range)} is not a range of addresses such as 10.0.0.0/8`)
    const mapped = Number(suffix) >= mappedBits ? mappedIpv4(address) : undefined
    if (mapped !== undefined) lists[4].addSubnet(mapped, Number(suffix) - mappedBits, 'ipv4')
    else lists[isV4 ? 4 : 6].addSubnet(address, Number(suffix), isV4 ? 'ipv4' : 'ipv6')
  }
  return lists
}

/** The IPv4 address of `::ffff:10.0.0.0`, in which a range may be written too. */
function mappedIpv4(address: string): string | undefined {
  const groups = isIPv4(address) ? [] : groupsOf(address)
  return groups[5] === 0xffff ? innerIpv4(groups) : undefined
}

const contains = (lists: RangeLists, address: string): boolean =>
  isIPv4(address) ? lists[4].check(address, 'ipv4') : lists[6].check(address, 'ipv6')

const maxVerdicts = 1_000

/** Keeps the verdicts on the latest addresses: a check makes objects, and every request needs one. */
function remembered(test: AddressTest): AddressTest {
  const verdicts = new Map<string, boolean>()
  return (address) => {
    const known = verdicts.get(address)
    if (known !== undefined) return known
    if (verdicts.size >= maxVerdicts) verdicts.clear()
    const verdict = test(address)
    verdicts.set(address, verdict)
    return verdict
  }
}

/** For clusters with Pods in public and private ranges. */
export const anyAddress: AddressTest = () => true

/** Tests whether an address is in one of the ranges; throws TypeError for an invalid range. */
export function rangeTest(ranges: readonly string[]): AddressTest {
  const list = listOf(ranges)
  return remembered((address) => {
    const known = classifyAddress(address)
    return known !== undefined && contains(list, known.plain)
  })
}

/** Which private addresses documents may be fetched from: none, all of this machine and its networks, or these ranges. */
export type PrivateAddresses = boolean | readonly string[]

const inside: ReadonlySet<AddressClass> = new Set(['private', 'loopback', 'benchmarking'])

/** Tests whether documents may be fetched from an address; throws TypeError for an invalid range. */
export function addressTest(allowed: PrivateAddresses): AddressTest {
  const isNamed = rangeTest(typeof allowed === 'boolean' ? [] : allowed)
  return (address) => {
    const known = classifyAddress(address)
    if (!known) return false
    if (isNamed(address) || known.class === 'public') return true
    return allowed === true && inside.has(known.class)
  }
}

const dialable: ReadonlySet<AddressClass> = new Set([
  'public',
  'private',
  'documentation',
  'benchmarking',
])

/**
 * Whether an address may be that of a Pod or a node. Never one in disguise, whatever it stands for: the address of
 * a Pod is written plainly.
 */
export const isDialable: AddressTest = remembered((address) => {
  const known = classifyAddress(address)
  return known !== undefined && !known.isDisguised && dialable.has(known.class)
})

/** Whether an address is one of this machine's own. */
export const isLoopback: AddressTest = (address) => classifyAddress(address)?.class === 'loopback'

/** Whether an address is one of this machine's own, and written as that. */
export const isPlainLoopback: AddressTest = (address) => {
  const known = classifyAddress(address)
  return known?.class === 'loopback' && !known.isDisguised
}

/** Whether a cloud platform hands out metadata or credentials there, or may do so behind a relay to IPv4. */
export const isPlatformAddress: AddressTest = (address) => {
  const known = classifyAddress(address)
  return known?.class === 'platform' || known?.class === 'transition'
}
