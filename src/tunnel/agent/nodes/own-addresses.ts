import { BlockList, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')

/** Whether an interface of this machine has the address, however either is spelled. */
export function hasAddress(address: string): boolean {
  const wanted = new BlockList()
  wanted.addAddress(address, familyOf(address))
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .some((own) => wanted.check(own.address, familyOf(own.address)))
}
