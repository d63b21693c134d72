import { LinkStalled } from './errors.ts'
import type { LinkLimits } from './limits.ts'
import type { Carrier, LinkSide } from './link.ts'

/** How often a link is looked at within the time that it may stand still. */
const looksPerLimit = 4

/**
 * Finds a link whose other end lives but takes nothing: its receive loop hangs on one connection,
 * and with it every other connection of the link. Pings are answered all the while.
 */
export class StallWatch {
  readonly #carrier: Carrier
  readonly #timer: NodeJS.Timeout
  #hasProgressed = true
  #idleLooks = 0

  constructor(carrier: Carrier, limitMs: number, onStall: () => void) {
    this.#carrier = carrier
    this.#timer = setInterval(() => {
      if (this.#isStalled()) onStall()
    }, limitMs / looksPerLimit).unref()
  }

  /** The other end took some of what waited. */
  progressed(): void {
    this.#hasProgressed = true
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #isStalled(): boolean {
    const stands = this.#carrier.backlog > 0 && !this.#hasProgressed
    this.#idleLooks = stands ? this.#idleLooks + 1 : 0
    this.#hasProgressed = false
    return this.#idleLooks >= looksPerLimit
  }
}

/** Watches a link that many connections share; whether a front end's one connection is read is its client's affair. */
export function watchForStall(
  link: { readonly carrier: Carrier; readonly side: LinkSide; readonly limits: LinkLimits },
  onStall: (stalled: LinkStalled) => void,
): StallWatch | undefined {
  if (link.side !== 'server' && link.side !== 'agent') return undefined
  const { stalledLinkMs } = link.limits
  return new StallWatch(link.carrier, stalledLinkMs, () => onStall(new LinkStalled(stalledLinkMs)))
}

/** Notices that nothing of what waits in a queue is taken any more. */
export class Standstill {
  readonly #backlog: () => number
  readonly #noticed: () => void
  #timer: NodeJS.Timeout | undefined
  #before = 0

  constructor(backlog: () => number, noticed: () => void) {
    this.#backlog = backlog
    this.#noticed = noticed
  }

  get isWatching(): boolean {
    return this.#timer !== undefined
  }

  /** Begins to watch, or begins anew; less must wait each time the limit has passed. */
  watch(limitMs: number): void {
    clearTimeout(this.#timer)
    this.#before = this.#backlog()
    this.#timer = setTimeout(() => this.#look(limitMs), limitMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #look(limitMs: number): void {
    const waiting = this.#backlog()
    if (waiting === 0) this.stop()
    else if (waiting < this.#before) this.watch(limitMs)
    else {
      this.stop()
      this.#noticed()
    }
  }
}
