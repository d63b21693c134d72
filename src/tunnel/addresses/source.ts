import { networkOf, parseIp } from './ip-range.ts'

const ipv6NetworkBits = 64

/** The part of an address that one party has: all of IPv4, the network of IPv6. */
export function sourceOf(address: string): string {
  const ip = parseIp(address)
  if (!ip) return address
  const bits = ip.width === 32 ? 32 : ipv6NetworkBits
  return `${networkOf(ip, bits).toString(16)}/${bits}`
}
