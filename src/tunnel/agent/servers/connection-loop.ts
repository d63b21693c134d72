import { type Clock, type Logger, pause } from '../../../core/index.ts'
import { showHostPort } from '../../addresses.ts'
import { type ConnectedServer, dismissLink } from './connect-server.ts'
import { RetrySchedule } from './retry-schedule.ts'
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
const jitter = 0.1
/** Stands for all names among the things that can fail. */
const names = ''

/** Keeps one link to every server. An address that does not answer holds up none of the others. */
export class ConnectionLoop {
  readonly #parts: ConnectionLoopParts
  /** The server that last answered at an address: while it is linked, the address needs no link. */
  readonly #serverAt = new Map<string, string>()
  readonly #retries: RetrySchedule
  /** The addresses that are being connected to. */
  readonly #attempts = new Map<string, Promise<void>>()
  /** What was last said of an address. */
  readonly #told = new Map<string, string>()
  #turn = 0
  #addresses: readonly ServerAddress[] = []
  #resolvedAt = Number.NEGATIVE_INFINITY

  constructor(parts: ConnectionLoopParts) {
    const { syncIntervalMs: firstMs, syncIntervalCapMs: capMs, clock, random } = parts
    this.#parts = parts
    this.#retries = new RetrySchedule({ initialMs: firstMs, maxMs: capMs, clock, random })
  }

  /** Runs until `signal` aborts; never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { syncIntervalMs, random } = this.#parts
    while (!signal.aborted) {
      await this.#sync(signal)
      const intervalMs = syncIntervalMs * (1 + jitter * random())
      await pause(Math.min(intervalMs, this.#retries.nextDueMs), signal)
    }
    await Promise.all(this.#attempts.values())
  }

  async #sync(signal: AbortSignal): Promise<void> {
    if (!this.#needsAddresses()) return
    const address = this.#next(await this.#resolve())
    if (address === undefined || signal.aborted) return
    const where = showHostPort(address)
    const attempt = this.#try(address, signal).finally(() => this.#attempts.delete(where))
    this.#attempts.set(where, attempt)
  }

  /** While there is nobody to connect to, names need not be asked for all the time. */
  #needsAddresses(): boolean {
    if (this.#addresses.length === 0) return this.#retries.isDue(names)
    const isFresh = this.#parts.clock.monotonic() - this.#resolvedAt < resolveMs
    return !isFresh || this.#candidates(this.#addresses).length > 0
  }

  async #resolve(): Promise<readonly ServerAddress[]> {
    this.#addresses = await this.#parts.addresses()
    this.#resolvedAt = this.#parts.clock.monotonic()
    if (this.#addresses.length === 0) this.#retries.failed(names)
    else this.#forgetOthersThan(this.#addresses)
    return this.#addresses
  }

  /** Never throws. */
  async #try(address: ServerAddress, signal: AbortSignal): Promise<void> {
    const where = showHostPort(address)
    try {
      await this.#connectTo(address, signal)
      this.#retries.succeeded(where)
      this.#told.delete(where)
    } catch (error) {
      this.#retries.failed(where)
      if (!signal.aborted) this.#tell(where, error)
    }
  }

  /** An address that stays away is told once while others are connected. */
  #tell(where: string, err: unknown): void {
    const { links, log } = this.#parts
    const why = err instanceof Error ? err.message : String(err)
    const isKnown = links.size > 0 && this.#told.get(where) === why
    this.#told.set(where, why)
    const words = 'cannot connect to a tunnel server, trying again'
    if (isKnown) log.debug({ err }, words)
    else log.warn({ err }, words)
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

  #next(addresses: readonly ServerAddress[]): ServerAddress | undefined {
    const candidates = this.#candidates(addresses)
    return candidates[this.#turn++ % candidates.length]
  }

  /** The addresses to connect to now: those without a link first, all while more servers are wanted. */
  #candidates(addresses: readonly ServerAddress[]): readonly ServerAddress[] {
    const { links, serverCount, syncForever } = this.#parts
    const free = addresses.filter((address) => this.#isFree(showHostPort(address)))
    const bare = free.filter((address) => !this.#hasLink(showHostPort(address)))
    if (bare.length > 0) return bare
    return syncForever || links.size < serverCount() ? free : []
  }

  #isFree(where: string): boolean {
    return !this.#attempts.has(where) && this.#retries.isDue(where)
  }

  #hasLink(where: string): boolean {
    const serverId = this.#serverAt.get(where)
    return serverId !== undefined && this.#parts.links.has(serverId)
  }

  #forgetOthersThan(addresses: readonly ServerAddress[]): void {
    const known = new Set(addresses.map(showHostPort))
    this.#retries.keep(known)
    for (const map of [this.#serverAt, this.#told])
      for (const where of map.keys()) if (!known.has(where)) map.delete(where)
  }
}
