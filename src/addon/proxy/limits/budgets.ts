import { ApiError, type Clock } from '../../../core/index.ts'
import type { Meter } from '../forward/index.ts'
import { BytePace, RateGate } from './pace.ts'
import type { ProxyLimits } from './proxy-limits.ts'

/** What passes: a request, or a connection that has left HTTP. */
export type SessionKind = 'Request' | 'Tunnel'

/** A place that was given to a request, until it is left. */
export interface Admission {
  readonly toBackend: Meter
  readonly toClient: Meter
  leave(): void
}

/** Against what a request is counted. */
export interface Claim {
  /** Whose it is; all requests with the same key share one budget. */
  readonly key: string
  readonly limits: ProxyLimits
}

/** What one user has used up of one budget. */
class Budget {
  readonly rate: RateGate
  readonly up: BytePace
  readonly down: BytePace
  readonly open: Record<SessionKind, number> = { Request: 0, Tunnel: 0 }

  constructor(clock: Clock) {
    this.rate = new RateGate(clock)
    this.up = new BytePace(clock)
    this.down = new BytePace(clock)
  }

  get isIdle(): boolean {
    const { open, rate, up, down } = this
    return open.Request + open.Tunnel === 0 && rate.isIdle && up.isIdle && down.isIdle
  }
}

const maxOf = {
  Request: ({ maxRequests }: ProxyLimits) => maxRequests,
  Tunnel: ({ maxTunnels }: ProxyLimits) => maxTunnels,
} as const

/** The budgets of all users, those of single Services among them. */
export class Budgets {
  readonly #clock: Clock
  readonly #budgets = new Map<string, Budget>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Gives a place under all claims together, or throws a 429 that says when to come again. */
  enter(kind: SessionKind, claims: readonly Claim[]): Admission {
    const held = claims.map(({ key, limits }) => ({ limits, budget: this.#budget(key) }))
    for (const { budget, limits } of held) {
      if (budget.open[kind] >= maxOf[kind](limits))
        throw tooMany(`you have too many ${kind.toLowerCase()}s open here`, 1)
      const waitMs = budget.rate.take(limits.requestsPerSecond, limits.requestBurst)
      if (waitMs > 0)
        throw tooMany('you send requests faster than is allowed', Math.ceil(waitMs / 1_000))
    }
    for (const { budget } of held) budget.open[kind]++
    let isOpen = true
    const pass =
      (direction: 'up' | 'down'): Meter =>
      (bytes) =>
        Math.max(
          ...held.map(({ budget, limits }) => budget[direction].pass(bytes, limits.bytesPerSecond)),
        )
    return {
      toBackend: pass('up'),
      toClient: pass('down'),
      leave: () => {
        if (!isOpen) return
        isOpen = false
        for (const { budget } of held) budget.open[kind]--
      },
    }
  }

  /** Forgets those who use nothing; to be called now and then. */
  sweep(): void {
    for (const [key, budget] of this.#budgets) if (budget.isIdle) this.#budgets.delete(key)
  }

  #budget(key: string): Budget {
    const known = this.#budgets.get(key)
    if (known) return known
    const budget = new Budget(this.#clock)
    this.#budgets.set(key, budget)
    return budget
  }
}

const tooMany = (why: string, retryAfterSeconds: number): ApiError =>
  new ApiError('TooManyRequests', `${why}, please try again later`, {
    details: { retryAfterSeconds },
  })
