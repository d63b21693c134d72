import { isIPv4, isIPv6 } from 'node:net'
import { parseIpRange } from '../../addresses/index.ts'

const checkOf: Readonly<Record<string, (value: string) => boolean>> = {
  ipv4: isIPv4,
  ipv6: isIPv6,
  host: (value) => value !== '',
  cidr: (value) => parseIpRange(value) !== undefined,
  uid: () => true,
  'default-route': (value) => value === 'true' || value === 'false',
}

/** Says what is wrong with identifiers such as `host=node1&ipv4=10.0.0.1&default-route=true`. */
export function problemOfIdentifiers(text: string): string | undefined {
  if (text === '') return undefined
  for (const [type, value] of new URLSearchParams(text)) {
    const isGood = Object.hasOwn(checkOf, type) ? checkOf[type] : undefined
    if (!isGood) return `must use the types ${Object.keys(checkOf).join(', ')}; unknown: "${type}"`
    if (!isGood(value)) return `must be right for each type; "${value}" is no ${type}`
  }
  return undefined
}
