import { ApiError, type Authentication, type RequestInfo, wellKnown } from '../../core/index.ts'
import { socketBucket } from '../pipeline/limits.ts'
import { FairQueue, type PoolName, type QueueLimits, type Ticket } from './fair-queue.ts'

/** How many requests may be under way at once. */
export interface FairnessLimits {
  readonly readOnly: number
  readonly mutating: number
  /** Watches and streams, which hold little but hold it long. */
  readonly longRunning: number
  /** The part of each of these that one user may hold: 0.25 is a quarter. */
  readonly userShare: number
  /** How many requests of one user may wait, and of all users together. */
  readonly queuedPerUser: number
  readonly queuedInTotal: number
  readonly maxQueueMs: number
}

/** The numbers of kube-apiserver where it has one. */
export const defaultFairnessLimits: FairnessLimits = {
  readOnly: 400,
  mutating: 200,
  longRunning: 10_000,
  userShare: 0.25,
  queuedPerUser: 128,
  queuedInTotal: 4_096,
  maxQueueMs: 15_000,
}

/** What decides about a request's place. */
export interface Applicant {
  readonly authentication: Authentication
  readonly info: RequestInfo
  readonly longRunning: boolean
  readonly sourceAddress: string
}

const tooManyRequests = () =>
  new ApiError('TooManyRequests', 'too many requests, please try again later', {
    details: { retryAfterSeconds: 1 },
  })

/** Lets so many requests in, makes the rest wait in turn by user, and turns away what is too much. */
export class Fairness {
  readonly #pools: Readonly<Record<PoolName, FairQueue>>

  constructor(limits: FairnessLimits) {
    const queue = (running: number, waiting: boolean): FairQueue => {
      const sizes: QueueLimits = {
        running,
        runningPerUser: Math.max(1, Math.floor(running * limits.userShare)),
        queuedPerUser: waiting ? limits.queuedPerUser : 0,
        queuedInTotal: waiting ? limits.queuedInTotal : 0,
        maxQueueMs: limits.maxQueueMs,
      }
      return new FairQueue(sizes, tooManyRequests)
    }
    this.#pools = {
      readOnly: queue(limits.readOnly, true),
      mutating: queue(limits.mutating, true),
      longRunning: queue(limits.longRunning, false),
    }
  }

  /** `undefined` for requests that are never held back. */
  ticketFor(applicant: Applicant): Ticket | undefined {
    const { user } = applicant.authentication
    if (isHealthCheck(applicant.info) || user.groups.includes(wellKnown.masters)) return undefined
    return {
      pool: poolOf(applicant),
      user: bucketOf(applicant),
      urgent: user.groups.includes(wellKnown.nodes) && isHeartbeat(applicant.info),
      state: 'new',
    }
  }

  /** Returns at once when there is room, later when there will be, and throws a 429 when there won't. */
  admit(ticket: Ticket): void | Promise<void> {
    return this.#pools[ticket.pool].enter(ticket)
  }

  /** Safe in every state, and twice. */
  release(ticket: Ticket): void {
    this.#pools[ticket.pool].leave(ticket)
  }

  /** Requests under way, for the metrics. */
  running(pool: PoolName): number {
    return this.#pools[pool].running
  }

  /** Requests waiting for their turn, for the metrics. */
  queued(pool: PoolName): number {
    return this.#pools[pool].queued
  }

  /** Requests turned away since the start, for the metrics. */
  refused(pool: PoolName): number {
    return this.#pools[pool].refused
  }
}

const readOnlyVerbs = new Set(['get', 'list', 'watch', 'head', 'options'])

function poolOf(applicant: Applicant): PoolName {
  if (applicant.longRunning) return 'longRunning'
  return readOnlyVerbs.has(applicant.info.verb) ? 'readOnly' : 'mutating'
}

/**
 * Whoever acts as others pays for it: every editor of a namespace may act as all its service accounts,
 * and there can be any number of them. Anonymous users are told apart by where they come from: one of
 * them must not speak for all.
 */
function bucketOf({ authentication, sourceAddress }: Applicant): string {
  const { username } = authentication.impersonator ?? authentication.user
  return username === wellKnown.anonymous ? `\0${socketBucket(sourceAddress)}` : username
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
