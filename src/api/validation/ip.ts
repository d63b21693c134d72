import { isIPv4, isIPv6 } from 'node:net'

/** An IP address as a number. */
export interface Ip {
  readonly family: 4 | 6
  readonly value: bigint
}

/** How many bits an address of the family has. */
export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128)

const parseV4 = (text: string): bigint =>
  text.split('.').reduce((value, octet) => (value << 8n) | BigInt(octet), 0n)

function groupsOf(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)]
    const v4 = parseV4(group)
    return [v4 >> 16n, v4 & 0xffffn]
  })
}

function parseV6(text: string): bigint {
  const [head = '', tail] = text.split('::')
  const before = groupsOf(head)
  const after = tail === undefined ? [] : groupsOf(tail)
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0n)
  return [...before, ...zeros, ...after].reduce((value, group) => (value << 16n) | group, 0n)
}

/** Reads an address in any form that means one thing only; `undefined` for everything else. */
export function parseIp(text: string): Ip | undefined {
  if (isIPv4(text)) return { family: 4, value: parseV4(text) }
  // A zone is for the machine that wrote it, not for an API.
  if (!isIPv6(text) || text.includes('%')) return undefined
  return { family: 6, value: parseV6(text) }
}

/** True for an IPv6 address that only wraps an IPv4 one (`::ffff:0:0/96`). */
const isMappedV4 = (ip: Ip): boolean => ip.family === 6 && ip.value >> 32n === 0xffffn

function formatV6(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  )
  // RFC 5952 §4.2: the longest run of two or more zero groups gives way, the first of equals.
  const runs = groups.join(':').match(/(?<![0-9a-f])0(:0)+(?![0-9a-f])/g) ?? []
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '')
  if (longest === '') return groups.join(':')
  const text = groups.join(':')
  const at = text.search(new RegExp(`(?<![0-9a-f])${longest}(?![0-9a-f])`))
  const head = text.slice(0, at).replace(/:$/, '')
  const tail = text.slice(at + longest.length).replace(/^:/, '')
  return `${head}::${tail}`
}

/** The address in its canonical form. */
export function formatIp(ip: Ip): string {
  if (ip.family === 6) return formatV6(ip.value)
  return [24n, 16n, 8n, 0n].map((shift) => String((ip.value >> shift) & 0xffn)).join('.')
}

/** No address with a few zeros too many is longer; on a longer text the pattern would work for hours. */
const longestSpelling = 100

const withoutLeadingZeros = (text: string): string =>
  text.length > longestSpelling ? text : text.replace(/(^|[.:])0+(?=\d+\.|\d+$)/g, '$1')

/** Problems of an address in a field that accepts any spelling of it. */
export function ipProblems(text: string): string[] {
  const ip = parseIp(text)
  if (ip) return isMappedV4(ip) ? ['must not be an IPv4-mapped IPv6 address'] : []
  if (text.includes('.') && parseIp(withoutLeadingZeros(text))) return ['must not have leading 0s']
  return ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']
}

/** Problems of an address in a field that accepts its canonical form only. */
export function canonicalIpProblems(text: string): string[] {
  const problems = ipProblems(text)
  const ip = parseIp(text)
  if (problems.length > 0 || !ip || formatIp(ip) === text) return problems
  return [`must be in canonical form ("${formatIp(ip)}")`]
}

const inRange = (ip: Ip, family: 4 | 6, range: bigint, prefix: number): boolean =>
  ip.family === family && ip.value >> BigInt(bitsOf(family) - prefix) === range

/** True for 127.0.0.0/8 and ::1. */
const isLoopback = (ip: Ip): boolean =>
  inRange(ip, 4, 127n, 8) || (ip.family === 6 && ip.value === 1n)

/** Problems of an address that traffic is to be sent to. */
export function endpointIpProblems(text: string, allowLoopback: boolean): string[] {
  const ip = parseIp(text) ?? parseIp(withoutLeadingZeros(text))
  if (!ip) return ['must be a valid IP address']
  const problems: string[] = []
  if (ip.value === 0n) problems.push(`may not be unspecified (${text})`)
  if (isLoopback(ip) && !allowLoopback) {
    problems.push('may not be in the loopback range (127.0.0.0/8, ::1/128)')
  }
  if (inRange(ip, 4, 0xa9fen, 16) || inRange(ip, 6, 0x3fan, 10)) {
    problems.push('may not be in the link-local range (169.254.0.0/16, fe80::/10)')
  }
  if (inRange(ip, 4, 0xe00000n, 24) || inRange(ip, 6, 0xff02n, 16)) {
    problems.push('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')
  }
  return problems
}

/** What to tell the sender of an address that is right but unusually spelled. */
export function ipWarnings(text: string, field: string): string[] {
  const ip = parseIp(text)
  if (ip?.family !== 6 || formatIp(ip) === text) return []
  return [
    `${field}: IPv6 address "${text}" should be in RFC 5952 canonical format ("${formatIp(ip)}")`,
  ]
}

/** A range of addresses. */
export interface Cidr {
  readonly family: 4 | 6
  /** The first address of the range. */
  readonly base: bigint
  readonly prefix: number
}

interface Spelled {
  readonly ip: Ip
  readonly prefix: number
}

function spelled(text: string): Spelled | undefined {
  const [address = '', length = '', ...rest] = text.split('/')
  const ip = parseIp(address)
  if (!ip || rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined
  const prefix = Number(length)
  return prefix > bitsOf(ip.family) ? undefined : { ip, prefix }
}

const hostMask = ({ ip, prefix }: Spelled): bigint =>
  (1n << BigInt(bitsOf(ip.family) - prefix)) - 1n

/** Reads a range such as `10.96.0.0/12`; `undefined` when it is none or has bits beyond its prefix. */
export function parseCidr(text: string): Cidr | undefined {
  const found = spelled(text)
  if (!found || isMappedV4(found.ip) || (found.ip.value & hostMask(found)) !== 0n) return undefined
  return { family: found.ip.family, base: found.ip.value, prefix: found.prefix }
}

/** The range in its canonical form. */
export const formatCidr = (cidr: Cidr): string =>
  `${formatIp({ family: cidr.family, value: cidr.base })}/${cidr.prefix}`

/** No range with a few zeros too many is longer; on a longer text the pattern would work for hours. */
const longestSpelling_cidr = 100

const withoutLeadingZeros_cidr = (text: string): string =>
  text.length > longestSpelling_cidr ? text : text.replace(/(^|[./:])0+(?=\d+[./]|\d+$)/g, '$1')

/** Problems of a range of addresses. */
export function cidrProblems(text: string): string[] {
  const found = spelled(text)
  if (!found) {
    return spelled(withoutLeadingZeros_cidr(text))
      ? ['must not have leading 0s in IP or prefix length']
      : ['must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)']
  }
  if (isMappedV4(found.ip)) return ['must not have an IPv4-mapped IPv6 address']
  if ((found.ip.value & hostMask(found)) === 0n) return []
  return ['must not have bits set beyond the prefix length']
}
