import { performance } from 'node:perf_hooks'
import { ApiError } from '../../core/index.ts'
import { type CpuLimits, defaultCpuLimits } from '../limits.ts'

/** Where time and load come from. */
export interface CpuSources {
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Busy part of the event loop's time, 0 to 1, lately. */
  readonly load: () => number
}

interface Account {
  debtMs: number
  paidAt: number
  chargedAt: number
}

const recountMs = 100

/** The event loop's load over the last tenth of a second or more. */
function eventLoopLoad(): () => number {
  let since = performance.eventLoopUtilization()
  let at = performance.now()
  let load = 0
  return () => {
    const now = performance.now()
    if (now - at < recountMs) return load
    load = performance.eventLoopUtilization(since).utilization
    since = performance.eventLoopUtilization()
    at = now
    return load
  }
}

/**
 * Charges CPU time to the users who cause it. Active users have equal shares of one core. While the
 * event loop is saturated, a user who has used more than its share is rejected until the debt is paid;
 * while it is not, no user is rejected: idle time is free.
 */
export class CpuAccounts {
  readonly #limits: CpuLimits
  readonly #sources: CpuSources
  readonly #accounts = new Map<string, Account>()
  #active = 1
  #countedAt = Number.NEGATIVE_INFINITY
  #rejected = 0

  constructor(limits: CpuLimits = defaultCpuLimits, sources?: CpuSources) {
    this.#limits = limits
    this.#sources = sources ?? { now: () => performance.now(), load: eventLoopLoad() }
  }

  /** Requests rejected since the start, for the metrics. */
  get rejected(): number {
    return this.#rejected
  }

  /** Charges `ms` of CPU time. */
  charge(user: string, ms: number): void {
    const now = this.#sources.now()
    const account = this.#accounts.get(user) ?? { debtMs: 0, paidAt: now, chargedAt: now }
    this.#accounts.set(user, account)
    this.#pay(account, now)
    account.debtMs = Math.min(account.debtMs + ms, this.#limits.maxDebtMs)
    account.chargedAt = now
  }

  /** Throws a 429 for a user who has used more than its share while others wait. */
  check(user: string): void {
    const account = this.#accounts.get(user)
    if (account === undefined || account.debtMs <= this.#limits.burstMs) return
    this.#pay(account, this.#sources.now())
    const owedMs = account.debtMs - this.#limits.burstMs
    if (owedMs <= 0 || this.#sources.load() < this.#limits.saturation) return
    this.#rejected++
    const retryAfterSeconds = Math.ceil((owedMs * this.#active) / 1000)
    throw new ApiError(
      'TooManyRequests',
      'your requests have used more than their share of CPU time, please try again later',
      { details: { retryAfterSeconds } },
    )
  }

  #pay(account: Account, now: number): void {
    if (now - this.#countedAt >= recountMs) this.#recount(now)
    account.debtMs = Math.max(0, account.debtMs - (now - account.paidAt) / this.#active)
    account.paidAt = now
  }

  #recount(now: number): void {
    this.#countedAt = now
    this.#active = 0
    for (const [user, { chargedAt, debtMs, paidAt }] of this.#accounts) {
      if (now - chargedAt <= this.#limits.activeMs) this.#active++
      // Paid off long ago, at whatever share.
      else if (now - Math.max(chargedAt, paidAt) > debtMs * 100 + this.#limits.activeMs)
        this.#accounts.delete(user)
    }
    this.#active = Math.max(1, this.#active)
  }
}
