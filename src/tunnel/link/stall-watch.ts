import type { Carrier } from './carrier.ts'
import type { LinkLimits } from './limits.ts'
import { LinkStalled } from './link-errors.ts'
import type { LinkSide } from './link-side.ts'

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
