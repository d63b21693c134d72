import type { Holder } from './held-bytes.ts'

/** Requests that compete for the same permits. */
export type PoolName = 'readOnly' | 'mutating' | 'longRunning'

/** Kinds of clients, each with permits and memory of its own. */
export type Level = 'administrator' | 'health' | 'user' | 'serviceAccount' | 'anonymous'

/** A request among those under way; to be passed to `release` in every case. */
export interface Ticket extends Holder {
  readonly level: Level
  readonly pool: PoolName
  /** Limited by this user's own load only, not by that of others. */
  readonly urgent: boolean
  state: 'new' | 'queued' | 'running' | 'over'
  /** Resolves or rejects the wait of a queued request. */
  settle?: (error?: Error) => void
}

/** The sizes of one queue. */
export interface QueueLimits {
  readonly running: number
  readonly runningPerUser: number
  readonly queuedPerUser: number
  readonly queuedInTotal: number
  readonly maxQueueMs: number
}

interface UserLoad {
  readonly user: string
  running: number
  readonly waiting: Ticket[]
}

/**
 * Runs `running` tickets at once. The others wait per user, and users take turns: a user with a
 * thousand waiting requests delays only its own.
 */
export class FairQueue {
  readonly #limits: QueueLimits
  readonly #rejection: () => Error
  readonly #users = new Map<string, UserLoad>()
  /** Users with waiting tickets, the next one to be served first. */
  readonly #turns = new Set<UserLoad>()
  #running = 0
  #queued = 0
  #urgentQueued = 0
  #rejected = 0

  constructor(limits: QueueLimits, rejection: () => Error) {
    this.#limits = limits
    this.#rejection = rejection
  }

  get running(): number {
    return this.#running
  }

  get queued(): number {
    return this.#queued
  }

  get rejected(): number {
    return this.#rejected
  }

  /** Returns if the ticket may run, a promise if it is queued; throws if the queue is full. */
  enter(ticket: Ticket): void | Promise<void> {
    const load = this.#loadOf(ticket.user)
    const isNext = ticket.urgent || load.waiting.length === 0
    if (isNext && this.#hasPermitFor(load, ticket)) {
      this.#run(load, ticket)
      return undefined
    }
    return this.#wait(load, ticket)
  }

  /** Releases the ticket's permit, which goes to the next in turn. */
  leave(ticket: Ticket): void {
    const load = this.#users.get(ticket.user)
    if (load === undefined || ticket.state === 'over') return
    if (ticket.state === 'queued') this.#abandon(load, ticket)
    if (ticket.state === 'running') {
      load.running--
      this.#running--
    }
    ticket.state = 'over'
    this.#serveTurns()
    this.#forgetIdle(load)
  }

  #loadOf(user: string): UserLoad {
    let load = this.#users.get(user)
    if (load === undefined) {
      load = { user, running: 0, waiting: [] }
      this.#users.set(user, load)
    }
    return load
  }

  #hasPermitFor(load: UserLoad, ticket: Ticket): boolean {
    if (load.running >= this.#limits.runningPerUser) return false
    return ticket.urgent || this.#running < this.#limits.running
  }

  #run(load: UserLoad, ticket: Ticket): void {
    load.running++
    this.#running++
    ticket.state = 'running'
  }

  #wait(load: UserLoad, ticket: Ticket): Promise<void> {
    const { queuedPerUser, queuedInTotal, maxQueueMs } = this.#limits
    if (load.waiting.length >= queuedPerUser || this.#queued >= queuedInTotal) {
      this.#reject(load, ticket)
      throw this.#rejection()
    }
    ticket.state = 'queued'
    if (ticket.urgent) load.waiting.unshift(ticket)
    else load.waiting.push(ticket)
    this.#queued++
    if (ticket.urgent) this.#urgentQueued++
    this.#turns.add(load)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#timeOut(load, ticket), maxQueueMs)
      ticket.settle = (error) => {
        clearTimeout(timer)
        if (error) reject(error)
        else resolve()
      }
    })
  }

  #reject(load: UserLoad, ticket: Ticket): void {
    this.#rejected++
    ticket.state = 'over'
    this.#forgetIdle(load)
  }

  #timeOut(load: UserLoad, ticket: Ticket): void {
    this.#removeWaiting(load, ticket)
    this.#reject(load, ticket)
    ticket.settle?.(this.#rejection())
  }

  /** The client disconnected while it waited: the promise is settled, without effect. */
  #abandon(load: UserLoad, ticket: Ticket): void {
    this.#removeWaiting(load, ticket)
    ticket.settle?.(this.#rejection())
  }

  #removeWaiting(load: UserLoad, ticket: Ticket): void {
    const index = load.waiting.indexOf(ticket)
    if (index < 0) return
    load.waiting.splice(index, 1)
    this.#queued--
    if (ticket.urgent) this.#urgentQueued--
    if (load.waiting.length === 0) this.#turns.delete(load)
  }

  /** One ticket per user and turn; a user who was served goes to the end of the line. */
  #serveTurns(): void {
    for (const load of this.#turns) {
      if (this.#running >= this.#limits.running && this.#urgentQueued === 0) return
      const ticket = load.waiting[0]
      if (ticket === undefined || !this.#hasPermitFor(load, ticket)) continue
      this.#removeWaiting(load, ticket)
      if (this.#turns.delete(load)) this.#turns.add(load)
      this.#run(load, ticket)
      ticket.settle?.()
    }
  }

  #forgetIdle(load: UserLoad): void {
    if (load.running === 0 && load.waiting.length === 0) this.#users.delete(load.user)
  }
}
