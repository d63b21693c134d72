import { isIP, isIPv4, isIPv6 } from 'node:net'

/** A place to dial. */
export interface HostPort {
  /** Lower case, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

const bracketed = /^\[([^\]]*)\]:(\d{1,5})$/
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
  const address = host.split('%')[0] ?? ''
  const isGood = inBrackets ? isIPv6(address) : isIP(host) === 4 || hostName.test(host)
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

/** Reads an IP address; `undefined` if it is none, a name for example. */
export function parseIp(text: string): IpNumber | undefined {
  if (isIPv4(text)) return { value: readGroups(text.split('.').map(Number), 8n), width: 32 }
  const address = text.split('%')[0] ?? ''
  return isIPv6(address) ? readIpv6(address) : undefined
}

/** The address with all but its first `bits` cleared. */
export const networkOf = ({ value, width }: IpNumber, bits: number): bigint =>
  (value >> BigInt(width - bits)) << BigInt(width - bits)

/** A range of addresses. */
export interface IpRange extends IpNumber {
  readonly bits: number
}

/** Reads a range such as `10.0.0.0/8`; `undefined` if it is none. */
export function parseIpRange(text: string): IpRange | undefined {
  const [address = '', suffix = '', ...more] = text.split('/')
  const ip = parseIp(address)
  if (!ip || more.length > 0 || !/^\d{1,3}$/.test(suffix)) return undefined
  const bits = Number(suffix)
  if (bits > ip.width) return undefined
  return { value: networkOf(ip, bits), width: ip.width, bits }
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
