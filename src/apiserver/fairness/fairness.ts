import { ApiError, type Authentication, type RequestInfo, wellKnown } from '../../core/index.ts'
import type { FairnessLimits } from '../limits.ts'
import {
  FairQueue,
  type Level,
  type PoolName,
  type QueueLimits,
  type Ticket,
} from './fair-queue.ts'
import { HeldBytes } from './held-bytes.ts'

/** What a request's level, pool and user are derived from. */
export interface FairRequest {
  readonly authentication: Authentication
  readonly info: RequestInfo
  readonly longRunning: boolean
  readonly sourceAddress: string
  /** Ends the request and its connection. */
  disconnect(why: Error): void
}

const tooManyRequests = () =>
  new ApiError('TooManyRequests', 'too many requests, please try again later', {
    details: { retryAfterSeconds: 1 },
  })

type QueuedLevel = 'user' | 'serviceAccount' | 'anonymous'
const queuedLevels: readonly QueuedLevel[] = ['user', 'serviceAccount', 'anonymous']

/**
 * Limits the requests under way, queues the rest in turns by user, and rejects what exceeds the queue.
 * A permit is for the work of the server: it is acquired when the body has arrived and released when the
 * response is complete. What a slow client sends or does not read is counted in bytes.
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

  /** A new ticket; nothing is counted before `receive` or `admit`. */
  ticketFor(request: FairRequest): Ticket {
    const { authentication, info } = request
    const level = levelOf(request)
    return {
      level,
      pool: poolOf(request),
      user: bucketOf(level, request),
      urgent: authentication.user.groups.includes(wellKnown.nodes) && isHeartbeat(info),
      state: 'new',
      held: 0,
      request,
    }
  }

  /** Counts what has arrived of a request's body; throws a 429 when its user sends too much at once. */
  receive(ticket: Ticket, bytes: number): void {
    if (!this.#held[ticket.level].hold(ticket, bytes)) throw tooManyRequests()
  }

  /** Returns at once if there is a permit, a promise if the request is queued; throws a 429 if the queue is full. */
  admit(ticket: Ticket): void | Promise<void> {
    return this.#queueOf(ticket)?.enter(ticket)
  }

  /** Releases the permit and counts what the client has to read instead; disconnects it if that is too much. */
  completed(ticket: Ticket, unreadBytes: number): void {
    this.#queueOf(ticket)?.leave(ticket)
    this.unread(ticket, unreadBytes)
  }

  /** Counts what the client of a stream has to read; disconnects it if that is too much. */
  unread(ticket: Ticket, unreadBytes: number): void {
    if (this.#held[ticket.level].hold(ticket, unreadBytes)) return
    this.#held[ticket.level].release(ticket)
    ticket.request.disconnect(new Error('the client does not read its responses'))
  }

  /** The client of a stream has read everything. */
  read(ticket: Ticket): void {
    this.#held[ticket.level].release(ticket)
  }

  /** Releases everything; safe in every state, and twice. */
  release(ticket: Ticket): void {
    this.#queueOf(ticket)?.leave(ticket)
    this.#held[ticket.level].release(ticket)
  }

  /** Administrators and health checks need no permit. */
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

  /** Requests rejected since the start, for the metrics. */
  rejected(pool: PoolName): number {
    return this.#sum((level) => this.#queues[level][pool].rejected)
  }

  /** Bytes that wait for clients, and how many requests were ended because of them, for the metrics. */
  held(): { readonly level: Level; readonly bytes: number; readonly disconnected: number }[] {
    return Object.entries(this.#held).map(([level, { total, disconnected }]) => ({
      level: level as Level,
      bytes: total,
      disconnected,
    }))
  }

  #sum(read: (level: QueuedLevel) => number): number {
    let sum = 0
    for (const level of queuedLevels) sum += read(level)
    return sum
  }
}

/** `queuedShare` is 0 for streams: they have no end to wait for. */
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

function poolOf(request: FairRequest): PoolName {
  if (request.longRunning) return 'longRunning'
  return readOnlyVerbs.has(request.info.verb) ? 'readOnly' : 'mutating'
}

/**
 * Impersonation counts for the authenticated user: every editor of a namespace may impersonate all its
 * service accounts, and there can be any number of them.
 */
function levelOf({ authentication, info }: FairRequest): Level {
  if (isHealthCheck(info)) return 'health'
  const { user, impersonator } = authentication
  const { username, groups } = impersonator ?? user
  if (user.groups.includes(wellKnown.masters) || groups.includes(wellKnown.masters))
    return 'administrator'
  if (username === wellKnown.anonymous) return 'anonymous'
  return username.startsWith(wellKnown.serviceAccountUserPrefix) ? 'serviceAccount' : 'user'
}

/** Clients that share limits: a user, the service accounts of a namespace, or anonymous clients of one address. */
function bucketOf(level: Level, { authentication, sourceAddress }: FairRequest): string {
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

/** The part of an address that one party controls: all of IPv4, the first 64 bits of IPv6. */
export function socketBucket(address: string): string {
  const bare = address.startsWith('::ffff:') ? address.slice(7) : address
  if (!bare.includes(':')) return bare
  const [head = '', tail] = bare.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail === undefined) return groups.slice(0, 4).join(':')
  const behind = tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - behind.length) }, () => '0')
  return [...groups, ...zeros, ...behind].slice(0, 4).join(':')
}

/** Users that one party controls: a single user, or all service accounts of a namespace. */
export function partyOf(username: string): string {
  const { serviceAccountUserPrefix: prefix } = wellKnown
  if (!username.startsWith(prefix)) return username
  const end = username.indexOf(':', prefix.length)
  return end < 0 ? username : username.slice(0, end)
}
