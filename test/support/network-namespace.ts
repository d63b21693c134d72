import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { findProgram } from './peers.ts'

const execute = promisify(execFile)

/** Why networks cannot be made here, or `undefined` if they can. */
export function whyNoNetworks(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const ip = findProgram('ip')
  return 'missing' in ip ? ip.missing : undefined
}

/** A network of its own, without a route to anywhere but loopback and what it is joined to. */
export class Network {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }

  static async open(label: string): Promise<Network> {
    const network = new Network(`${label}-${randomBytes(3).toString('hex')}`)
    await execute('ip', ['netns', 'add', network.name])
    await network.ip('link', 'set', 'lo', 'up')
    return network
  }

  /** The command under which a program runs in this network. */
  get inside(): readonly string[] {
    return ['ip', 'netns', 'exec', this.name]
  }

  async ip(...args: readonly string[]): Promise<void> {
    await execute('ip', ['-n', this.name, ...args])
  }

  /** Lets the network have an address that nobody else can reach. */
  async addAddress(address: string): Promise<void> {
    await this.ip('addr', 'add', `${address}/32`, 'dev', 'lo')
  }

  /** Joins two networks by a cable; each knows only the other's end of it. */
  async joinTo(other: Network, own: string, others: string): Promise<void> {
    const suffix = randomBytes(3).toString('hex')
    const [near, far] = [`va${suffix}`, `vb${suffix}`]
    const ends = ['type', 'veth', 'peer', 'name', far, 'netns', other.name]
    await this.ip('link', 'add', near, ...ends)
    for (const [network, link, address] of [
      [this, near, own],
      [other, far, others],
    ] as const) {
      await network.ip('addr', 'add', `${address}/30`, 'dev', link)
      await network.ip('link', 'set', link, 'up')
    }
  }

  async close(): Promise<void> {
    await execute('ip', ['netns', 'del', this.name])
  }
}
