import { BlockList, isIPv6 } from 'node:net'

function listOf(ranges: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList()
  for (const [address, bits] of ranges) {
    list.addSubnet(address, bits, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return list
}

const kinds = [
  [
    'a loopback address',
    listOf([
      ['127.0.0.0', 8],
      ['::1', 128],
    ]),
  ],
  [
    'a link-local address',
    listOf([
      ['169.254.0.0', 16],
      ['fe80::', 10],
    ]),
  ],
  [
    'no single address',
    listOf([
      ['0.0.0.0', 32],
      ['::', 128],
    ]),
  ],
] as const

/** Why Pods could not use this address as that of the API server, or nothing. */
export function bindAddressWarning(address: string): string | undefined {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  const kind = kinds.find(([, list]) => list.check(address, family))?.[0]
  if (kind === undefined) return undefined
  return `--bind-address ${address} is ${kind}: Endpoints of the API server cannot have it, use a private one such as 10.64.0.1`
}
