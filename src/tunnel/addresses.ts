import { isIP, isIPv4, isIPv6 } from 'node:net'

/** A place to dial. */
export interface HostPort {
  /** Lower case, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

const bracketed = /^\[([^\]]*)\]:(\d{1,5})$/
/** A zone that every version of Node.js takes for one, and of bounded length. */
const zoned = /^[^%]*(?:%[a-z\d.-]{1,63})?$/
const plain = /^([^:[\]]+):(\d{1,5})$/
const hostName =
  /^(?=.{1,253}$)[a-z\d_](?:[a-z\d_-]*[a-z\d_])?(?:\.[a-z\d_](?:[a-z\d_-]*[a-z\d_])?)*\.?$/

/** Reads `host:port`, IPv6 in brackets only; `undefined` for anything else. */
export function parseHostPort(text: string): HostPort | undefined {
  const inBrackets = bracketed.exec(text)
  const match = inBrackets ?? plain.exec(text)
  if (!match) return undefined
  const host = (match[1] ?? '').toLowerCase()
  const port = Number(match[2])
  if (port < 1 || port > 65_535) return undefined
  const isGood = inBrackets
    ? isIPv6(host) && zoned.test(host)
    : isIP(host) === 4 || hostName.test(host)
  return isGood ? { host, port } : undefined
}

/** `host:port` as the protocol writes it, IPv6 in brackets. */
export const showHostPort = ({ host, port }: HostPort): string =>
  isIPv6(host.split('%')[0] ?? '') ? `[${host}]:${port}` : `${host}:${port}`

/** Says what is wrong with a text that should be `host:port`. */
export const checkHostPort = (text: string): string | undefined =>
  parseHostPort(text) ? undefined : 'must be HOST:PORT, with IPv6 addresses in brackets'

/** An address as a number, and how many bits it has. */
export interface IpNumber {
  readonly value: bigint
  readonly width: 32 | 128
}

/**
 * Reads an IP address; `undefined` if it is none, a name for example. A text is an address if it is one to Node.js, zone
 * included: admission goes by the same rule, and must not take for a name what counts as an address here.
 */
export function parseIp(text: string): IpNumber | undefined {
  if (isIPv4(text)) return { value: readGroups(text.split('.').map(Number), 8n), width: 32 }
  return isIPv6(text) ? readIpv6(text.split('%')[0] ?? '') : undefined
}

/** The address with all but its first `bits` cleared. */
export const networkOf = ({ value, width }: IpNumber, bits: number): bigint =>
  (value >> BigInt(width - bits)) << BigInt(width - bits)

/** A range of addresses. */
export interface IpRange extends IpNumber {
  readonly bits: number
  covers(value: bigint): boolean
}

/** The same for every spelling of an address or a host name. */
export function hostKey(host: string): string {
  const ip = parseIp(host)
  return ip ? `${ip.width} ${ip.value}` : host.toLowerCase().replace(/\.$/, '')
}

/** Values by ranges of addresses. */
export class RangeTable<T> {
  /** By address width, then by prefix length: few maps to look into, however many ranges there are. */
  readonly #byWidth = {
    32: new Map<number, Map<bigint, Map<T, number>>>(),
    128: new Map<number, Map<bigint, Map<T, number>>>(),
  }

  /** Adds a value to a range; what is added twice must be deleted twice. */
  add(range: IpRange, value: T): void {
    const byLength = this.#byWidth[range.width]
    const networks = byLength.get(range.bits) ?? new Map<bigint, Map<T, number>>()
    byLength.set(range.bits, networks)
    const values = networks.get(range.value) ?? new Map<T, number>()
    networks.set(range.value, values.set(value, (values.get(value) ?? 0) + 1))
  }

  delete(range: IpRange, value: T): void {
    const byLength = this.#byWidth[range.width]
    const networks = byLength.get(range.bits)
    const values = networks?.get(range.value)
    const count = (values?.get(value) ?? 0) - 1
    if (count > 0) values?.set(value, count)
    else values?.delete(value)
    if (values?.size === 0) networks?.delete(range.value)
    if (networks?.size === 0) byLength.delete(range.bits)
  }

  /** The values of all ranges around an address with at most so many bits, the narrowest first. */
  *around(ip: IpNumber, maxBits: number): Generator<Iterable<T>> {
    const byLength = this.#byWidth[ip.width]
    for (const bits of [...byLength.keys()].toSorted((a, b) => b - a)) {
      const values = bits <= maxBits ? byLength.get(bits)?.get(networkOf(ip, bits)) : undefined
      if (values) yield values.keys()
    }
  }

  /** Whether a narrower range inside has any other value than `own`. */
  hasInside(range: IpRange, own: T): boolean {
    for (const [bits, networks] of this.#byWidth[range.width]) {
      if (bits <= range.bits) continue
      for (const [network, values] of networks)
        if (range.covers(network) && [...values.keys()].some((value) => value !== own)) return true
    }
    return false
  }
}

/** Reads a range such as `10.0.0.0/8`; `undefined` if it is none. */
export function parseIpRange(text: string): IpRange | undefined {
  const [address = '', suffix = '', ...more] = text.split('/')
  const ip = parseIp(address)
  if (!ip || more.length > 0 || !/^\d{1,3}$/.test(suffix)) return undefined
  // An IPv4 range may be written as IPv6 too, ::ffff:10.0.0.0/104.
  const isMapped = ip.width === 32 && address.includes(':')
  const bits = Number(suffix) - (isMapped ? 96 : 0)
  return bits < 0 || bits > ip.width ? undefined : rangeAround(ip, bits)
}

/** The range of this many bits that an address is in. */
export function rangeAround(ip: IpNumber, bits: number = ip.width): IpRange {
  const { width } = ip
  const value = networkOf(ip, bits)
  const covers = (other: bigint): boolean => networkOf({ value: other, width }, bits) === value
  return { value, width, bits, covers }
}

const readGroups = (groups: readonly number[], width: bigint): bigint =>
  groups.reduce((value, group) => (value << width) | BigInt(group), 0n)

function readIpv6(text: string): IpNumber {
  // An IPv4 tail, as in ::ffff:10.0.0.1, stands for the last two groups.
  const tail = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text)
  const hex = tail ? text.slice(0, tail.index) + hexOf(tail.slice(1).map(Number)) : text
  const [head = '', rest] = hex.split('::')
  const first = groupsOf(head)
  const last = groupsOf(rest ?? '')
  const middle = Array.from({ length: 8 - first.length - last.length }, () => 0)
  const value = readGroups([...first, ...middle, ...last], 16n)
  // The same host as the IPv4 address inside, so it is in the same ranges.
  const mapped = value >> 32n === 0xffffn
  return mapped ? { value: value & 0xffffffffn, width: 32 } : { value, width: 128 }
}

const hexOf = ([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string =>
  `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`

const groupsOf = (text: string): number[] =>
  text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
