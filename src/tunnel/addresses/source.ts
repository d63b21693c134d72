import { networkOf, parseIp } from '../addresses.ts'

const ipv6NetworkBits = 64

/** An address for people: IPv4 as such, also where a socket for both families has it. */
export const plainAddress = (address = ''): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** The part of an address that one party has: all of IPv4, the network of IPv6. */
export function sourceOf(address: string): string {
  const ip = parseIp(address)
  if (!ip) return address
  const bits = ip.width === 32 ? 32 : ipv6NetworkBits
  return `${networkOf(ip, bits).toString(16)}/${bits}`
}
