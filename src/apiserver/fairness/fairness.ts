import { ApiError, type Authentication, type RequestInfo, wellKnown } from '../../core/index.ts'
import { partyOf, socketBucket } from '../pipeline/limits.ts'
import {
  FairQueue,
  type Level,
  type PoolName,
  type QueueLimits,
  type Ticket,
} from './fair-queue.ts'
import { HeldBytes } from './held-bytes.ts'

/** How many requests may be under way at once, and what slow clients may cost. */
export interface FairnessLimits {
  /** Of users; service accounts have as many of their own, and anonymous clients `anonymousShare` of that. */
  readonly readOnly: number
  readonly mutating: number
  /** Watches and streams, which hold little but hold it long. */
  readonly longRunning: number
  /** The part of each of these that one user may hold: 0.25 is a quarter. */
  readonly userShare: number
  readonly anonymousShare: number
  /** How many requests of one user may wait, and of all users together. */
  readonly queuedPerUser: number
  readonly queuedInTotal: number
  readonly maxQueueMs: number
  /** Bytes of bodies on their way in and of responses on their way out. */
  readonly maxHeldBytesPerUser: number
  readonly maxHeldBytesInTotal: number
}

/** The numbers of kube-apiserver where it has one. */
export const defaultFairnessLimits: FairnessLimits = {
  readOnly: 400,
  mutating: 200,
  longRunning: 10_000,
  userShare: 0.25,
  anonymousShare: 0.05,
  queuedPerUser: 128,
  queuedInTotal: 4_096,
  maxQueueMs: 15_000,
  maxHeldBytesPerUser: 64 * 2 ** 20,
  maxHeldBytesInTotal: 256 * 2 ** 20,
}

/** What decides about a request's place. */
export interface Applicant {
  readonly authentication: Authentication
  readonly info: RequestInfo
  readonly longRunning: boolean
  readonly sourceAddress: string
  /** Ends the request and its connection. */
  cut(why: Error): void
}

const tooManyRequests = () =>
  new ApiError('TooManyRequests', 'too many requests, please try again later', {
    details: { retryAfterSeconds: 1 },
  })

type QueuedLevel = 'user' | 'serviceAccount' | 'anonymous'
const queuedLevels: readonly QueuedLevel[] = ['user', 'serviceAccount', 'anonymous']

/**
 * Lets so many requests in, makes the rest wait in turn by user, and turns away what is too much.
 * A permit is for the work of the server: it is taken when the body has arrived and given back when the
 * response is made. What a slow client sends or does not read is counted in bytes.
 */
export class Fairness {
  readonly #queues: Readonly<Record<QueuedLevel, Readonly<Record<PoolName, FairQueue>>>>
  readonly #held: Readonly<Record<Level, HeldBytes>>

  constructor(limits: FairnessLimits) {
    const queues = (share: number) => ({
      readOnly: queueOf(limits, limits.readOnly * share, share),
      mutating: queueOf(limits, limits.mutating * share, share),
      longRunning: queueOf(limits, limits.longRunning * share, 0),
    })
    this.#queues = {
      user: queues(1),
      serviceAccount: queues(1),
      anonymous: queues(limits.anonymousShare),
    }
    this.#held = {
      administrator: heldOf(limits, { ofUser: 4, ofTotal: 1 }),
      health: heldOf(limits, { ofUser: 1 / 256, ofTotal: 1 / 64 }),
      user: heldOf(limits, { ofUser: 1, ofTotal: 1 }),
      serviceAccount: heldOf(limits, { ofUser: 1, ofTotal: 1 }),
      anonymous: heldOf(limits, { ofUser: 1 / 256, ofTotal: 1 / 64 }),
    }
  }

  /** The request's place; nothing is counted before `receive` or `admit`. */
  ticketFor(applicant: Applicant): Ticket {
    const { authentication, info } = applicant
    const level = levelOf(applicant)
    return {
      level,
      pool: poolOf(applicant),
      user: bucketOf(level, applicant),
      urgent: authentication.user.groups.includes(wellKnown.nodes) && isHeartbeat(info),
      state: 'new',
      held: 0,
      cut: (why) => applicant.cut(why),
    }
  }

  /** Counts what has arrived of a request's body; throws a 429 when its user sends too much at once. */
  receive(ticket: Ticket, bytes: number): void {
    if (!this.#held[ticket.level].hold(ticket, bytes)) throw tooManyRequests()
  }

  /** Returns at once when there is room, later when there will be, and throws a 429 when there won't. */
  admit(ticket: Ticket): void | Promise<void> {
    return this.#queueOf(ticket)?.enter(ticket)
  }

  /** Gives the permit back and counts what the client has to read instead; cuts it if that is too much. */
  worked(ticket: Ticket, unreadBytes: number): void {
    this.#queueOf(ticket)?.leave(ticket)
    this.unread(ticket, unreadBytes)
  }

  /** Counts what the client of a stream has to read; cuts it if that is too much. */
  unread(ticket: Ticket, unreadBytes: number): void {
    if (this.#held[ticket.level].hold(ticket, unreadBytes)) return
    this.#held[ticket.level].release(ticket)
    ticket.cut(new Error('the client does not read its responses'))
  }

  /** The client of a stream has read everything. */
  read(ticket: Ticket): void {
    this.#held[ticket.level].release(ticket)
  }

  /** Gives everything back; safe in every state, and twice. */
  release(ticket: Ticket): void {
    this.#queueOf(ticket)?.leave(ticket)
    this.#held[ticket.level].release(ticket)
  }

  /** Administrators and health checks need no permit: others cannot take theirs. */
  #queueOf({ level, pool }: Ticket): FairQueue | undefined {
    return level === 'administrator' || level === 'health' ? undefined : this.#queues[level][pool]
  }

  /** Requests under way, for the metrics. */
  running(pool: PoolName): number {
    return this.#sum((level) => this.#queues[level][pool].running)
  }

  /** Requests waiting for their turn, for the metrics. */
  queued(pool: PoolName): number {
    return this.#sum((level) => this.#queues[level][pool].queued)
  }

  /** Requests turned away since the start, for the metrics. */
  refused(pool: PoolName): number {
    return this.#sum((level) => this.#queues[level][pool].refused)
  }

  /** Bytes that wait for clients, and how many requests were cut because of them, for the metrics. */
  held(): { readonly level: Level; readonly bytes: number; readonly cut: number }[] {
    return Object.entries(this.#held).map(([level, { total, cut }]) => ({
      level: level as Level,
      bytes: total,
      cut,
    }))
  }

  #sum(read: (level: QueuedLevel) => number): number {
    let sum = 0
    for (const level of queuedLevels) sum += read(level)
    return sum
  }
}

/** `queuedShare` 0: waiting for a stream to end makes no sense. */
function queueOf(limits: FairnessLimits, size: number, queuedShare: number): FairQueue {
  const running = size === 0 ? 0 : Math.max(1, Math.floor(size))
  const sizes: QueueLimits = {
    running,
    runningPerUser: Math.max(1, Math.floor(running * limits.userShare)),
    queuedPerUser: queuedShare === 0 ? 0 : limits.queuedPerUser,
    queuedInTotal: Math.floor(limits.queuedInTotal * queuedShare),
    maxQueueMs: limits.maxQueueMs,
  }
  return new FairQueue(sizes, tooManyRequests)
}

const heldOf = (
  limits: FairnessLimits,
  { ofUser, ofTotal }: { readonly ofUser: number; readonly ofTotal: number },
): HeldBytes =>
  new HeldBytes({
    maxBytesPerUser: limits.maxHeldBytesPerUser * ofUser,
    maxBytesInTotal: limits.maxHeldBytesInTotal * ofTotal,
  })

const readOnlyVerbs = new Set(['get', 'list', 'watch', 'head', 'options'])

function poolOf(applicant: Applicant): PoolName {
  if (applicant.longRunning) return 'longRunning'
  return readOnlyVerbs.has(applicant.info.verb) ? 'readOnly' : 'mutating'
}

/**
 * Impersonation counts for the real user: every editor of a namespace may act as all its service
 * accounts, and there can be any number of them.
 */
function levelOf({ authentication, info }: Applicant): Level {
  if (isHealthCheck(info)) return 'health'
  const { user, impersonator } = authentication
  const { username, groups } = impersonator ?? user
  if (user.groups.includes(wellKnown.masters) || groups.includes(wellKnown.masters))
    return 'administrator'
  if (username === wellKnown.anonymous) return 'anonymous'
  return username.startsWith(wellKnown.serviceAccountUserPrefix) ? 'serviceAccount' : 'user'
}

/** Those who share: a user, the service accounts of a namespace, or unknown clients of one address. */
function bucketOf(level: Level, { authentication, sourceAddress }: Applicant): string {
  const { username } = authentication.impersonator ?? authentication.user
  if (level === 'anonymous' || level === 'health') return socketBucket(sourceAddress)
  return partyOf(username)
}

function isHealthCheck(info: RequestInfo): boolean {
  return !info.isResourceRequest && /^\/(?:healthz|livez|readyz)(?:\/|$)/.test(info.path)
}

function isHeartbeat(info: RequestInfo): boolean {
  return (
    (info.resource === 'leases' && info.namespace === 'kube-node-lease') ||
    (info.resource === 'nodes' && info.subresource === 'status')
  )
}
