import { execFile } from 'node:child_process'
import { BlockList, isIPv6 } from 'node:net'
import { networkInterfaces, platform } from 'node:os'
import { promisify } from 'node:util'
import type { Logger } from '../../../core/index.ts'

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')

/** Whether an interface of this machine has the address, however either is spelled. */
function hasAddress(address: string): boolean {
  const wanted = new BlockList()
  wanted.addAddress(address, familyOf(address))
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .some((own) => wanted.check(own.address, familyOf(own.address)))
}

/** The name of the interface that carries bind addresses. */
const dummyInterface = 'sallyport0'

/** Runs a program to its end; rejects when it fails. */
export type RunProgram = (program: string, args: readonly string[]) => Promise<unknown>

/** Runs a program of this machine. */
export const runProgram: RunProgram = (program, args) =>
  promisify(execFile)(program, [...args], { timeout: 10_000 })

/** The calls of `ip` that put an address on an interface, each fine to repeat. */
export function interfaceCommands(address: string, device: string): (readonly string[])[] {
  const isV6 = isIPv6(address)
  const prefixed = `${address}/${isV6 ? 128 : 32}`
  // The address is this machine's alone. For IPv6 the kernel decides on the scope; no search for duplicates.
  const flags = isV6 ? ['nodad'] : ['scope', 'host']
  return [
    ['address', 'replace', prefixed, 'dev', device, ...flags],
    ['link', 'set', device, 'up'],
  ]
}

/** What making an interface needs to know of the machine. */
export interface InterfaceMaker {
  readonly isRoot: boolean
  readonly run: RunProgram
  readonly log: Logger
}

/** Sees to it that the machine has an address, as far as it can; whoever binds it tries again anyway. */
export async function provideAddress(address: string, maker: InterfaceMaker): Promise<void> {
  const { log } = maker
  if (hasAddress(address)) return
  if (platform() !== 'linux' || !maker.isRoot) {
    log.warn(
      { address },
      'only root on Linux can make an interface; waiting for somebody else to bring the address',
    )
    return
  }
  // It may be there already, from an earlier start or for another address.
  await maker.run('ip', ['link', 'add', dummyInterface, 'type', 'dummy']).catch(() => {})
  // A kernel without dummy interfaces has at least loopback, which serves as well.
  for (const device of [dummyInterface, 'lo']) {
    try {
      for (const args of interfaceCommands(address, device)) await maker.run('ip', args)
      log.info({ address, interface: device }, 'put the bind address on an interface')
      return
    } catch (err) {
      log.warn({ err, address, interface: device }, 'cannot put the bind address on an interface')
    }
  }
}
