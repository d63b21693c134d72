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

/**
 * Agents are believed what they announce, as Konnectivity does, except for names, addresses and ranges that are held under
 * another credential. What was refused counts once its holder has gone. A range does not hold what lies in it: the first
 * agent to announce all addresses would otherwise have them all.
 */
export class HolderCheck implements IdentityCheck {
  /** Who holds a name, an address or a range, and how often. */
  readonly #holders = new Map<string, { readonly key: string; count: number }>()
  readonly #all = new Set<Held>()

  admit(claim: Claim): () => void {
    const held: Held = { claim, accepted: nothing }
    this.#all.add(held)
    this.#judge(held)
    const { hosts, cidrs } = claim.identifiers
    const accepted = new Set([...held.accepted.hosts, ...held.accepted.cidrs])
    const refused = [...hosts, ...cidrs].filter((each) => !accepted.has(each))
    warnOf(claim.log, refused, 'they are held under another credential')
    return () => {
      this.#all.delete(held)
      this.#give(held)
      for (const other of this.#all) if (isIncomplete(other)) this.#judge(other)
    }
  }

  #judge(held: Held): void {
    const { identity, identifiers, changed } = held.claim
    this.#give(held)
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
    this.#holders.set(name, { key, count: (holder?.count ?? 0) + 1 })
    return true
  }

  #give({ accepted }: Held): void {
    for (const text of [...accepted.hosts, ...accepted.cidrs]) {
      const name = claimKey(text)
      const holder = this.#holders.get(name)
      if (holder && --holder.count === 0) this.#holders.delete(name)
    }
  }
}

const isIncomplete = ({ claim, accepted }: Held): boolean =>
  accepted.hosts.length < claim.identifiers.hosts.length ||
  accepted.cidrs.length < claim.identifiers.cidrs.length

/** The same for every spelling; an address is a range of one. */
function claimKey(text: string): string {
  const ip = parseIp(text)
  const range = ip ? rangeAround(ip) : parseIpRange(text)
  return range ? `${range.width} ${range.value}/${range.bits}` : hostKey(text)
}
