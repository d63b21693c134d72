import { firstThatWorks } from './first-that-works.ts'
import { parseServers, type ServerAddress } from './server-address.ts'
import { failureText, NoAddressReachable } from './transport-errors.ts'

type Addresses = readonly [ServerAddress, ...ServerAddress[]]

/** An address that does not answer at all must not hold up the others for as long as it may take. */
const headStartMs = 2_000

/** The addresses of one cluster: the one that answered last is asked first, the others stand by. */
export class AddressSet {
  #all: Addresses
  #good = 0

  constructor(all: Addresses) {
    this.#all = all
  }

  get all(): Addresses {
    return this.#all
  }

  /** Takes other addresses from now on, of the same scheme and path; the one that answered last still goes first. */
  replace(servers: readonly string[]): void {
    const [first] = this.#all
    const [, ...next] = parseServers([first.origin + first.basePath, ...servers])
    const [head, ...others] = next
    if (!head) return
    const good = this.#all[this.#good]?.origin
    this.#all = [head, ...others]
    this.#good = Math.max(
      this.#all.findIndex(({ origin }) => origin === good),
      0,
    )
  }

  /** The first connection that can be made; names each address and its failure when none can. */
  async connect<T extends { destroy(): unknown }>(
    dial: (address: ServerAddress) => Promise<T>,
  ): Promise<T> {
    const all = this.#all
    if (all.length === 1) return dial(all[0])
    const inTurn = [...all.slice(this.#good), ...all.slice(0, this.#good)]
    const outcome = await firstThatWorks(
      inTurn.map((address) => () => dial(address)),
      { headStartMs, undo: (late) => void late.destroy() },
    )
    if ('value' in outcome) {
      this.#good = Math.max(this.#all.indexOf(inTurn[outcome.index] ?? all[0]), 0)
      return outcome.value
    }
    const failures = inTurn.map(({ origin }, index) => ({
      address: origin,
      cause: outcome.failures[index],
    }))
    const reasons = failures.map(({ address, cause }) => `${address}: ${failureText(cause)}`)
    throw new NoAddressReachable(
      `none of the ${all.length} addresses of the cluster can be reached: ${reasons.join('; ')}`,
      failures,
    )
  }
}
