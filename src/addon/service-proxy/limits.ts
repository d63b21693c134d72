import { ApiError, type Clock, goQuote, type KubeObject, parseDuration } from '../../core/index.ts'
import type { Meter } from '../../http/index.ts'
import { BytePace, RateGate } from './pace.ts'

/** How much one user may use of the proxy. */
export interface ProxyLimits {
  readonly requestsPerSecond: number
  /** Requests that may come at once after a pause. */
  readonly requestBurst: number
  /** Requests at a time. */
  readonly maxRequests: number
  /** Upgraded connections at a time. */
  readonly maxTunnels: number
  /** In each direction, over all connections together. */
  readonly bytesPerSecond: number
  readonly maxRequestMs: number
  readonly maxTunnelMs: number
  /** How long nothing may pass. */
  readonly idleMs: number
}

/** How the text of an annotation is read, and what a person should have written. */
interface Reading {
  readonly form: string
  readonly read: (text: string) => number | undefined
}

const readNumber = (text: string): number | undefined =>
  /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

const unit: Readonly<Record<string, number>> = { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }

function readBytes(text: string): number | undefined {
  const [, number = '', suffix = ''] = /^(\d+)(Ki|Mi|Gi)?$/.exec(text) ?? []
  const count = readNumber(number)
  return count && count * (unit[suffix] ?? 1)
}

function readDuration(text: string): number | undefined {
  const ms = parseDuration(text)
  return ms !== undefined && ms > 0 ? ms : undefined
}

const wholeNumber: Reading = { form: 'a number of 1 or more', read: readNumber }
const bytes: Reading = { form: 'a size such as 64Ki', read: readBytes }
const duration: Reading = { form: 'a duration such as 30s', read: readDuration }

const limitName = /^sallyport\.dev\/proxy-/

/** The annotations by which a Service asks for tighter limits, how each is read and what it limits. */
const limitAnnotations: ReadonlyMap<
  string,
  { readonly limit: keyof ProxyLimits; readonly reading: Reading }
> = new Map([
  ['sallyport.dev/proxy-requests-per-second', { limit: 'requestsPerSecond', reading: wholeNumber }],
  ['sallyport.dev/proxy-request-burst', { limit: 'requestBurst', reading: wholeNumber }],
  ['sallyport.dev/proxy-max-requests', { limit: 'maxRequests', reading: wholeNumber }],
  ['sallyport.dev/proxy-max-tunnels', { limit: 'maxTunnels', reading: wholeNumber }],
  ['sallyport.dev/proxy-bytes-per-second', { limit: 'bytesPerSecond', reading: bytes }],
  ['sallyport.dev/proxy-max-request-age', { limit: 'maxRequestMs', reading: duration }],
  ['sallyport.dev/proxy-max-tunnel-age', { limit: 'maxTunnelMs', reading: duration }],
  ['sallyport.dev/proxy-idle-timeout', { limit: 'idleMs', reading: duration }],
])

/**
 * The limits for one Service: what its annotations ask for within the operator's bounds, or `undefined` when it asks
 * for nothing. One that is not known or cannot be read is a 503: whoever wrote it meant a limit.
 */
export function limitsOfService(service: KubeObject, bounds: ProxyLimits): ProxyLimits | undefined {
  let limits: ProxyLimits | undefined
  for (const [name, text] of Object.entries(service.metadata.annotations ?? {})) {
    if (!limitName.test(name)) continue
    const known = limitAnnotations.get(name)
    const value = known?.reading.read(text)
    if (!known || value === undefined) throw unreadable(service, name, known?.reading)
    limits = { ...(limits ?? bounds), [known.limit]: Math.min(value, bounds[known.limit]) }
  }
  return limits
}

function unreadable(service: KubeObject, name: string, reading: Reading | undefined): ApiError {
  const text = goQuote(service.metadata.annotations?.[name] ?? '')
  const why = reading
    ? `has a limit that cannot be read: ${name}: ${text} is not ${reading.form}`
    : `has a limit that is not known: ${name}`
  return new ApiError('ServiceUnavailable', `service ${goQuote(service.metadata.name)} ${why}`)
}

/** What passes: a request, or a connection that has left HTTP. */
export type SessionKind = 'Request' | 'Tunnel'

/** A place that was given to a request, until it is left. */
export interface Admission {
  readonly toUpstream: Meter
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
      toUpstream: pass('up'),
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

/** How many pages are unpacked at a time that may each need megabytes for it. */
interface PageWindowLimits {
  readonly perUser: number
  readonly overall: number
}

/** Each page under `br` may ask for a window of 4 MiB: 32 MiB for a user, 256 MiB for all. */
const defaultPageWindows: PageWindowLimits = { perUser: 8, overall: 64 }

/** The place of one request among those whose pages may be unpacked. */
export interface PageWindow {
  /** Takes the place, once or again; false if there is none left. */
  take(): boolean
  /** Gives it back, if it was taken. */
  leave(): void
}

/** The memory that unpacking may take, shared between users: pages are made by add-ons, and an add-on may be hostile. */
export class PageWindows {
  readonly #limits: PageWindowLimits
  readonly #taken = new Map<string, number>()
  #all = 0

  constructor(limits: PageWindowLimits = defaultPageWindows) {
    this.#limits = limits
  }

  /** A place for a request of this user, not taken yet. */
  of(user: string): PageWindow {
    let isTaken = false
    return {
      take: () => {
        isTaken ||= this.#take(user)
        return isTaken
      },
      leave: () => {
        if (isTaken) this.#leave(user)
        isTaken = false
      },
    }
  }

  #take(user: string): boolean {
    const { perUser, overall } = this.#limits
    const own = this.#taken.get(user) ?? 0
    if (own >= perUser || this.#all >= overall) return false
    this.#taken.set(user, own + 1)
    this.#all++
    return true
  }

  #leave(user: string): void {
    const left = (this.#taken.get(user) ?? 0) - 1
    if (left > 0) this.#taken.set(user, left)
    else this.#taken.delete(user)
    this.#all--
  }
}
