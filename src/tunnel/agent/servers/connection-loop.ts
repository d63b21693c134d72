import { type Clock, type Logger, pause } from '../../../core/index.ts'
import { showHostPort } from '../../addresses/index.ts'
import type { ConnectedServer } from './connect-server.ts'
import { dismissLink } from './dismiss-link.ts'
import type { ServerAddress } from './server-addresses.ts'
import type { ServerLinks } from './server-links.ts'

/** What the loop works with. */
export interface ConnectionLoopParts {
  readonly links: ServerLinks
  readonly addresses: () => Promise<readonly ServerAddress[]>
  readonly connect: (address: ServerAddress, signal: AbortSignal) => Promise<ConnectedServer>
  /** A server was reached, known already or not. */
  readonly reached: (server: ConnectedServer) => void
  readonly serverCount: () => number
  readonly syncIntervalMs: number
  readonly syncIntervalCapMs: number
  readonly syncForever: boolean
  readonly clock: Clock
  readonly log: Logger
  /** A number from 0 to 1, for jitter. */
  readonly random: () => number
}

/** How often names are resolved again while all is well, to find servers that have come. */
const resolveMs = 30_000
const backOffFactor = 1.5
const jitter = 0.1

/** Keeps one link to every server. */
export class ConnectionLoop {
  readonly #parts: ConnectionLoopParts
  /** The server that last answered at an address: while it is linked, the address needs no link. */
  readonly #serverAt = new Map<string, string>()
  #turn = 0
  #addresses: readonly ServerAddress[] = []
  #resolvedAt = Number.NEGATIVE_INFINITY
  #backOffMs: number

  constructor(parts: ConnectionLoopParts) {
    this.#parts = parts
    this.#backOffMs = parts.syncIntervalMs
  }

  /** Runs until `signal` aborts; never throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const isFine = await this.#sync(signal)
      await pause(this.#pauseAfter(isFine), signal)
    }
  }

  async #sync(signal: AbortSignal): Promise<boolean> {
    const { log } = this.#parts
    try {
      if (!this.#needsAddresses()) return true
      const addresses = await this.#resolve()
      const address = this.#next(addresses)
      if (address === undefined) return addresses.length > 0
      await this.#connectTo(address, signal)
      return true
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'cannot connect to a tunnel server, trying again')
      return signal.aborted
    }
  }

  /** While every known address has its link, names need not be asked for all the time. */
  #needsAddresses(): boolean {
    const isFresh = this.#parts.clock.monotonic() - this.#resolvedAt < resolveMs
    return !isFresh || this.#parts.syncForever || !this.#hasEnough(this.#addresses)
  }

  async #resolve(): Promise<readonly ServerAddress[]> {
    this.#addresses = await this.#parts.addresses()
    this.#resolvedAt = this.#parts.clock.monotonic()
    this.#forgetOthersThan(this.#addresses)
    return this.#addresses
  }

  async #connectTo(address: ServerAddress, signal: AbortSignal): Promise<void> {
    const { links, log, reached } = this.#parts
    const where = showHostPort(address)
    const server = await this.#parts.connect(address, signal)
    if (signal.aborted) {
      dismissLink(server.link)
      return
    }
    const { serverId, link } = server
    this.#serverAt.set(where, serverId)
    reached(server)
    if (links.add(server) === 'duplicate') {
      log.debug({ serverId, address: where }, 'connected already to the server that answered')
    } else {
      const capabilities = [...link.capabilities]
      log.info({ serverId, address: where, capabilities }, 'connected to a tunnel server')
    }
  }

  /** The address to connect to now: one without a link first; none when there are links enough. */
  #next(addresses: readonly ServerAddress[]): ServerAddress | undefined {
    if (this.#hasEnough(addresses) && !this.#parts.syncForever) return undefined
    const bare = this.#withoutLink(addresses)
    const candidates = bare.length > 0 ? bare : addresses
    return candidates[this.#turn++ % candidates.length]
  }

  #hasEnough(addresses: readonly ServerAddress[]): boolean {
    const { links, serverCount } = this.#parts
    return this.#withoutLink(addresses).length === 0 && links.size >= serverCount()
  }

  #withoutLink(addresses: readonly ServerAddress[]): ServerAddress[] {
    return addresses.filter((address) => {
      const serverId = this.#serverAt.get(showHostPort(address))
      return serverId === undefined || !this.#parts.links.has(serverId)
    })
  }

  #forgetOthersThan(addresses: readonly ServerAddress[]): void {
    const known = new Set(addresses.map(showHostPort))
    for (const where of this.#serverAt.keys()) if (!known.has(where)) this.#serverAt.delete(where)
  }

  #pauseAfter(isFine: boolean): number {
    const { syncIntervalMs, syncIntervalCapMs, random } = this.#parts
    const pauseMs = isFine ? syncIntervalMs : this.#backOffMs
    this.#backOffMs = isFine
      ? syncIntervalMs
      : Math.min(this.#backOffMs * backOffFactor, syncIntervalCapMs)
    return pauseMs * (1 + jitter * random())
  }
}
