import type { ServerAddress } from './server-address.ts'
import { ConnectionFailed, failureText } from './transport-errors.ts'

/** The addresses of one cluster: the one that answered last is asked first, the others stand by. */
export class AddressSet {
  readonly all: readonly [ServerAddress, ...ServerAddress[]]
  #good = 0

  constructor(all: readonly [ServerAddress, ...ServerAddress[]]) {
    this.all = all
  }

  /** The first connection that can be made; names each address and its failure when none can. */
  async connect<T>(dial: (address: ServerAddress) => Promise<T>): Promise<T> {
    const start = this.#good
    const failures: string[] = []
    let last: unknown
    for (let step = 0; step < this.all.length; step++) {
      const index = (start + step) % this.all.length
      const address = this.all[index] ?? this.all[0]
      try {
        const connection = await dial(address)
        this.#good = index
        return connection
      } catch (error) {
        last = error
        failures.push(`${address.origin}: ${failureText(error)}`)
      }
    }
    if (this.all.length === 1) throw last
    throw new ConnectionFailed(
      `none of the ${this.all.length} addresses of the cluster can be reached: ${failures.join('; ')}`,
      { cause: last },
    )
  }
}
