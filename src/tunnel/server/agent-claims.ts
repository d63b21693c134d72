import { type ClusterView, excerpt, isRecord, type Logger } from '../../core/index.ts'
import { hostKey, parseIp, parseIpRange, rangeAround } from '../addresses.ts'
import type { AgentIdentity } from './agent-identity.ts'
import type { AgentIdentifiers } from './agent-session.ts'
import type { NodeRoutes } from './node-routes.ts'

/** What an agent announces, and who it has proven to be. */
export interface Claim {
  readonly identity: AgentIdentity
  readonly identifiers: AgentIdentifiers
  /** Logs with the agent's names. */
  readonly log: Logger
  /** Other identifiers of the agent count from now on. */
  readonly changed: (accepted: AgentIdentifiers) => void
}

/** Decides which of the identifiers that an agent announces count. */
export interface IdentityCheck {
  /** Calls `changed` when something counts, or no longer; returns how to give everything back. */
  admit(claim: Claim): () => void
}

const nothing: AgentIdentifiers = { hosts: [], cidrs: [], isDefaultRoute: false }
const maxLogged = 10

const warnOf = (log: Logger, refused: readonly string[], why: string): void => {
  if (refused.length === 0) return
  const shown = refused.slice(0, maxLogged).map(excerpt)
  log.warn({ refused: shown, count: refused.length, why }, 'identifiers of an agent refused')
}

/** Where the permission for the default route is, for RBAC. */
export const defaultRoutePermission = {
  group: 'tunnel.sallyport.dev',
  resource: 'tunnelroutes',
  name: 'default',
  verb: 'use',
} as const

const reviewEveryMs = 60_000
const reviewTimeoutMs = 10_000
/** Reviews that may fail in a row before the permission counts as withdrawn. */
const maxFailedReviews = 3

/**
 * Agents serve what the cluster's objects say about their node, announced or not; so of what they announce only the
 * default route counts, with a permission for it. What does not belong to their node is logged.
 */
export class NodeCheck implements IdentityCheck {
  readonly #view: ClusterView
  readonly #routes: NodeRoutes

  constructor(view: ClusterView, routes: NodeRoutes) {
    this.#view = view
    this.#routes = routes
  }

  admit(claim: Claim): () => void {
    const { identity, identifiers, log, changed } = claim
    const { nodeName } = identity
    const refused = [
      ...identifiers.hosts.filter((host) => !this.#isOwn(nodeName, host)),
      ...identifiers.cidrs.filter((cidr) => !nodeName || !this.#routes.hasRange(nodeName, cidr)),
    ]
    warnOf(
      log,
      refused,
      nodeName === undefined
        ? 'the credential names no node'
        : `no Node, Pod CIDR or Pod shows that they belong to node ${excerpt(nodeName)} and to no other`,
    )
    changed(nothing)
    if (!identifiers.isDefaultRoute) return () => {}
    const watch = new PermissionWatch(this.#view, claim)
    void watch.review()
    return () => watch.stop()
  }

  #isOwn(nodeName: string | undefined, host: string): boolean {
    if (nodeName === undefined) return false
    const isOwnName = parseIp(host) === undefined && hostKey(host) === nodeName
    return isOwnName || this.#routes.nodeOf(host) === nodeName
  }
}

/** Grants the default route while the cluster permits it. */
class PermissionWatch {
  readonly #view: ClusterView
  readonly #claim: Claim
  readonly #stop = new AbortController()
  #isGranted: boolean | undefined
  #failures = 0
  #nextReview: NodeJS.Timeout | undefined

  constructor(view: ClusterView, claim: Claim) {
    this.#view = view
    this.#claim = claim
  }

  stop(): void {
    this.#stop.abort()
    clearTimeout(this.#nextReview)
  }

  /** Never rejects. */
  async review(): Promise<void> {
    const isAllowed = await this.#isAllowed()
    if (this.#stop.signal.aborted) return
    this.#set(isAllowed)
    this.#nextReview = setTimeout(() => void this.review(), reviewEveryMs).unref()
  }

  #set(isGranted: boolean): void {
    if (this.#isGranted === isGranted) return
    this.#isGranted = isGranted
    const { log, changed } = this.#claim
    changed({ ...nothing, isDefaultRoute: isGranted })
    const { verb, resource, group, name } = defaultRoutePermission
    if (isGranted) log.info({}, 'agent serves the default route')
    else
      warnOf(
        log,
        ['default-route=true'],
        `its user lacks the permission to ${verb} ${resource}.${group} "${name}"`,
      )
  }

  async #isAllowed(): Promise<boolean> {
    const { user } = this.#claim.identity
    if (!user) return false
    const { verb, ...place } = defaultRoutePermission
    const { username, groups, extra } = user
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      metadata: { name: '' },
      spec: {
        user: username,
        groups: [...groups],
        ...(extra && { extra }),
        resourceAttributes: { verb, ...place },
      },
    }
    try {
      const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(reviewTimeoutMs)])
      const { status } = await this.#view.review('SubjectAccessReview', review, signal)
      this.#failures = 0
      return isRecord(status) && status['allowed'] === true
    } catch (err) {
      if (this.#stop.signal.aborted) return false
      this.#failures++
      this.#claim.log.warn({ err }, 'permission for the default route could not be reviewed')
      return this.#isGranted === true && this.#failures < maxFailedReviews
    }
  }
}

interface Held {
  readonly claim: Claim
  accepted: AgentIdentifiers
}

/** Who holds a name, an address or a range. */
interface Holder {
  readonly key: string
  /** How many agents with this credential announce it. */
  count: number
  /** Set while it is kept for a holder that has gone. */
  reservation?: object | undefined
}

/** An agent that restarts, or whose node does, comes back within this time. */
export const defaultReservedMs = 300_000
/** Names that are kept for one credential, and their length: what agents announce and leave must not fill the memory. */
const maxReserved = 10_000
const maxReservedLength = 253

/**
 * Agents are believed what they announce, as Konnectivity does, except for names, addresses and ranges that are held under
 * another credential, or were until `reservedMs` ago. What was refused counts from then on. A range does not hold what lies
 * in it: the first agent to announce all addresses would otherwise have them all.
 */
export class HolderCheck implements IdentityCheck {
  readonly #reservedMs: number
  readonly #holders = new Map<string, Holder>()
  /** How much is kept, by credential. */
  readonly #reserved = new Map<string, number>()
  readonly #all = new Set<Held>()

  constructor(reservedMs = defaultReservedMs) {
    this.#reservedMs = reservedMs
  }

  admit(claim: Claim): () => void {
    const held: Held = { claim, accepted: nothing }
    this.#all.add(held)
    this.#judge(held)
    const accepted = new Set(namesIn(held.accepted))
    const refused = namesIn(claim.identifiers).filter((each) => !accepted.has(each))
    warnOf(claim.log, refused, 'they are held under another credential')
    return () => {
      this.#all.delete(held)
      this.#reserve(this.#give(held))
      this.#judgeRefused()
    }
  }

  /** What was refused before may have become free. */
  #judgeRefused(): void {
    for (const held of this.#all) {
      if (!isIncomplete(held)) continue
      const before = new Set(namesIn(held.accepted))
      this.#judge(held)
      const gained = namesIn(held.accepted).filter((name) => !before.has(name))
      if (gained.length === 0) continue
      const identifiers = gained.slice(0, maxLogged).map(excerpt)
      held.claim.log.warn(
        { identifiers, count: gained.length },
        'agent gets identifiers whose holder has gone',
      )
    }
  }

  #judge(held: Held): void {
    const { identity, identifiers, changed } = held.claim
    for (const [name] of this.#give(held)) this.#holders.delete(name)
    const take = (text: string): boolean => this.#take(claimKey(text), identity.key)
    held.accepted = {
      hosts: identifiers.hosts.filter(take),
      cidrs: identifiers.cidrs.filter(take),
      isDefaultRoute: identifiers.isDefaultRoute,
    }
    changed(held.accepted)
  }

  #take(name: string, key: string): boolean {
    const holder = this.#holders.get(name)
    if (holder && holder.key !== key) return false
    if (holder?.reservation) this.#countReserved(key, -1)
    this.#holders.set(name, { key, count: (holder?.count ?? 0) + 1 })
    return true
  }

  /** Returns what no agent holds any more. */
  #give({ accepted }: Held): [string, Holder][] {
    return namesIn(accepted).flatMap((text) => {
      const name = claimKey(text)
      const holder = this.#holders.get(name)
      return holder && --holder.count === 0 ? [[name, holder]] : []
    })
  }

  /** Keeps what a holder had for its return: another credential must not have to wait for a moment only. */
  #reserve(left: readonly [string, Holder][]): void {
    const reservation = {}
    for (const [name, holder] of left) {
      const isFull = (this.#reserved.get(holder.key) ?? 0) >= maxReserved
      if (isFull || name.length > maxReservedLength) this.#holders.delete(name)
      else {
        holder.reservation = reservation
        this.#countReserved(holder.key, 1)
      }
    }
    if (left.length === 0) return
    setTimeout(() => {
      for (const [name, holder] of left) {
        if (holder.reservation !== reservation || this.#holders.get(name) !== holder) continue
        this.#holders.delete(name)
        this.#countReserved(holder.key, -1)
      }
      this.#judgeRefused()
    }, this.#reservedMs).unref()
  }

  #countReserved(key: string, change: 1 | -1): void {
    const count = (this.#reserved.get(key) ?? 0) + change
    if (count > 0) this.#reserved.set(key, count)
    else this.#reserved.delete(key)
  }
}

const namesIn = ({ hosts, cidrs }: AgentIdentifiers): string[] => [...hosts, ...cidrs]

const isIncomplete = ({ claim, accepted }: Held): boolean =>
  accepted.hosts.length < claim.identifiers.hosts.length ||
  accepted.cidrs.length < claim.identifiers.cidrs.length

/** The same for every spelling; an address is a range of one. */
function claimKey(text: string): string {
  const ip = parseIp(text)
  const range = ip ? rangeAround(ip) : parseIpRange(text)
  return range ? `${range.width} ${range.value}/${range.bits}` : hostKey(text)
}
