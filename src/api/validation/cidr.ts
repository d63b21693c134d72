import { bitsOf, formatIp, type Ip, isMappedV4, parseIp } from './ip.ts'

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
const longestSpelling = 100

const withoutLeadingZeros = (text: string): string =>
  text.length > longestSpelling ? text : text.replace(/(^|[./:])0+(?=\d+[./]|\d+$)/g, '$1')

/** Problems of a range of addresses. */
export function cidrProblems(text: string): string[] {
  const found = spelled(text)
  if (!found) {
    return spelled(withoutLeadingZeros(text))
      ? ['must not have leading 0s in IP or prefix length']
      : ['must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)']
  }
  if (isMappedV4(found.ip)) return ['must not have an IPv4-mapped IPv6 address']
  if ((found.ip.value & hostMask(found)) === 0n) return []
  return ['must not have bits set beyond the prefix length']
}
