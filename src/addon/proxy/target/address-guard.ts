import { BlockList, isIP } from 'node:net'

/** Addresses at which no Pod and no node can be, but something of this machine or of its network may. */
const special = { 4: new BlockList(), 6: new BlockList() }
special[4].addSubnet('0.0.0.0', 8)
special[4].addSubnet('127.0.0.0', 8)
special[4].addSubnet('169.254.0.0', 16)
special[4].addSubnet('224.0.0.0', 3)
special[6].addSubnet('fe80::', 10, 'ipv6')
special[6].addSubnet('ff00::', 8, 'ipv6')
// What stands for an IPv4 address in IPv6 is refused whatever it stands for: a Pod's address is written plainly.
special[6].addSubnet('::', 96, 'ipv6')
special[6].addSubnet('::ffff:0:0', 96, 'ipv6')
special[6].addSubnet('64:ff9b::', 96, 'ipv6')
special[6].addSubnet('64:ff9b:1::', 48, 'ipv6')
special[6].addSubnet('2002::', 16, 'ipv6')

/** Verdicts on the addresses asked for last; a check makes objects, and every request asks. */
const verdicts = new Map<string, boolean>()
const maxVerdicts = 1_000

/** Whether an address may be that of a Pod or a node: an IP that is not loopback, link-local, multicast or unspecified. */
export function isDialable(address: string): boolean {
  const known = verdicts.get(address)
  if (known !== undefined) return known
  if (verdicts.size >= maxVerdicts) verdicts.clear()
  const verdict = check(address)
  verdicts.set(address, verdict)
  return verdict
}

function check(address: string): boolean {
  const family = isIP(address)
  if (family !== 4 && family !== 6) return false
  return !special[family].check(address, `ipv${family}`)
}
