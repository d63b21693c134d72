import type { Clock, Logger } from '../../../core/index.ts'
import type { IncomingDial, Link, LinkEnd } from '../../link/index.ts'
import { type ConnectedServer, dismissLink } from './connect-server.ts'

/** What the owner of all links wants to know and decides. */
export interface ServerLinksParts {
  readonly log: Logger
  readonly clock: Clock
  readonly dial: (dial: IncomingDial) => void
  /** A link that stood has ended with an error. */
  readonly broke: () => void
}

/** The links to servers, at most one to each. */
export class ServerLinks {
  readonly #parts: ServerLinksParts
  readonly #links = new Map<string, Link>()
  readonly #endings = new Set<Promise<void>>()
  readonly #waiting = new Set<() => void>()

  constructor(parts: ServerLinksParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#links.size
  }

  has(serverId: string): boolean {
    return this.#links.has(serverId)
  }

  /** Every link that is open, by its server's id. */
  entries(): [serverId: string, link: Link][] {
    return [...this.#links]
  }

  /** Resolves as soon as there is a link; rejects with the signal's reason. */
  anyConnected(signal: AbortSignal): Promise<void> {
    if (this.#links.size > 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(tell)
        reject(signal.reason)
      }
      const tell = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      if (signal.aborted) return giveUp()
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(tell)
    })
  }

  /** Takes a link over; one to a server that is linked already is closed, for the oldest is kept. */
  add({ serverId, link }: ConnectedServer): 'added' | 'duplicate' {
    if (this.#links.has(serverId)) {
      dismissLink(link)
      return 'duplicate'
    }
    const { log, clock } = this.#parts
    const began = clock.monotonic()
    this.#links.set(serverId, link)
    link.start({
      dial: (dial) => this.#parts.dial(dial),
      drain: () => log.info({ serverId }, 'the server asks for no new connections'),
    })
    const ending = link.ended.then((end) => {
      const seconds = Math.round((clock.monotonic() - began) / 1_000)
      this.#ended(serverId, end, seconds)
    })
    this.#endings.add(ending)
    void ending.finally(() => this.#endings.delete(ending))
    for (const tell of this.#waiting) tell()
    this.#waiting.clear()
    return 'added'
  }

  /** Tells every server that we go soon. */
  sendDrain(): void {
    for (const link of this.#links.values()) link.sendDrain()
  }

  /** Ends all links, and waits until they are gone. */
  async close(): Promise<void> {
    for (const link of this.#links.values()) link.close()
    await Promise.all(this.#endings)
  }

  #ended(serverId: string, end: LinkEnd, seconds: number): void {
    this.#links.delete(serverId)
    const { log, broke } = this.#parts
    if (end.error) {
      broke()
      log.warn({ serverId, seconds, err: end.error }, 'lost the link to a tunnel server')
    } else {
      log.info({ serverId, seconds }, 'the link to a tunnel server has ended')
    }
  }
}
