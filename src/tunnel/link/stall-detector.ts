import { LinkStalled } from './errors.ts'
import type { LinkLimits } from './limits.ts'
import type { Carrier, LinkSide } from './link.ts'

/** Checks of a link within the time for which it may make no progress. */
const checksPerLimit = 4

/**
 * Detects a link whose peer responds to pings but reads nothing: its receive loop hangs on one connection, and with it all
 * connections of the link.
 */
export class StallDetector {
  readonly #carrier: Carrier
  readonly #timer: NodeJS.Timeout
  #hasProgressed = true
  #checksWithoutProgress = 0

  constructor(carrier: Carrier, limitMs: number, onStall: () => void) {
    this.#carrier = carrier
    this.#timer = setInterval(() => {
      if (this.#isStalled()) onStall()
    }, limitMs / checksPerLimit).unref()
  }

  /** The peer has read some of the queued bytes. */
  progressed(): void {
    this.#hasProgressed = true
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #isStalled(): boolean {
    const isStuck = this.#carrier.backlog > 0 && !this.#hasProgressed
    this.#checksWithoutProgress = isStuck ? this.#checksWithoutProgress + 1 : 0
    this.#hasProgressed = false
    return this.#checksWithoutProgress >= checksPerLimit
  }
}

/** Watches a link that many connections share. A front end has one connection per link: its client decides when to read. */
export function detectStall(
  link: { readonly carrier: Carrier; readonly side: LinkSide; readonly limits: LinkLimits },
  onStall: (stalled: LinkStalled) => void,
): StallDetector | undefined {
  if (link.side !== 'server' && link.side !== 'agent') return undefined
  const { stalledLinkMs } = link.limits
  return new StallDetector(link.carrier, stalledLinkMs, () =>
    onStall(new LinkStalled(stalledLinkMs)),
  )
}

/** Calls back if a queue makes no progress within a time limit. */
export class StallTimer {
  readonly #backlog: () => number
  readonly #onStall: () => void
  #timer: NodeJS.Timeout | undefined
  #backlogBefore = 0

  constructor(backlog: () => number, onStall: () => void) {
    this.#backlog = backlog
    this.#onStall = onStall
  }

  get isRunning(): boolean {
    return this.#timer !== undefined
  }

  /** Starts, or starts again; the queue has to become shorter within each `limitMs`. */
  start(limitMs: number): void {
    clearTimeout(this.#timer)
    this.#backlogBefore = this.#backlog()
    this.#timer = setTimeout(() => this.#check(limitMs), limitMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #check(limitMs: number): void {
    const backlog = this.#backlog()
    if (backlog === 0) this.stop()
    else if (backlog < this.#backlogBefore) this.start(limitMs)
    else {
      this.stop()
      this.#onStall()
    }
  }
}
