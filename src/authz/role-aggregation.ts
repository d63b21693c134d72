import { isDeepStrictEqual } from 'node:util'
import { type Following, follow } from '../client/index.ts'
import {
  aborted,
  type ClusterView,
  type Component,
  hasReason,
  type KubeObject,
  type Logger,
  neverFails,
} from '../core/index.ts'
import { labelSelector } from './label-selector.ts'
import {
  type PolicyRule,
  rbacKinds,
  readRoleSelectors,
  readRules,
  writeRule,
} from './rbac-objects.ts'

/** The rules that an aggregated role gathers from `roles`, in Kubernetes' order and without doubles. */
function gatheredRules(role: KubeObject, roles: Iterable<KubeObject>): PolicyRule[] {
  const sorted = [...roles].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const rules = (readRoleSelectors(role) ?? [])
    .map(labelSelector)
    .flatMap((matches) =>
      sorted
        .filter(
          (each) => each.metadata.name !== role.metadata.name && matches(each.metadata.labels),
        )
        .flatMap(readRules),
    )
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()]
}

const retryMs = 1_000

/** Fills ClusterRoles that have an aggregation rule, from `start` to `stop`. */
export class RoleAggregation implements Component {
  readonly name = 'role-aggregation'
  readonly failed = neverFails()
  readonly #view: ClusterView
  readonly #log: Logger
  readonly #roles = new Map<string, KubeObject>()
  readonly #stop = new AbortController()
  #following: Following | undefined
  #running: Promise<void> = Promise.resolve()
  #scheduled = false

  constructor(view: ClusterView, log: Logger) {
    this.#view = view
    this.#log = log.child({ component: this.name })
  }

  /** Resolves once the roles that were there are filled. */
  async start(): Promise<void> {
    const follower = {
      put: (role: KubeObject) => {
        this.#roles.set(role.metadata.name, role)
        this.#schedule()
      },
      remove: (role: KubeObject) => {
        this.#roles.delete(role.metadata.name)
        this.#schedule()
      },
    }
    const options = { view: this.#view, kind: rbacKinds.clusterRole, log: this.#log }
    this.#following = follow(options, follower, this.#stop.signal)
    await this.#following.synced
    await this.#idle()
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stop.abort()
    const ended = Promise.all([this.#following?.ended, this.#running])
    await Promise.race([ended, aborted(deadline)])
  }

  /** Many changes in a row make one pass. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#running = this.#running.then(async () => {
      this.#scheduled = false
      await this.#fillAll()
    })
  }

  async #idle(): Promise<void> {
    const latest = this.#running
    await latest
    if (latest !== this.#running) await this.#idle()
  }

  async #fillAll(): Promise<void> {
    for (const role of this.#roles.values()) {
      if (this.#stop.signal.aborted || !readRoleSelectors(role)) continue
      await this.#fill(role).catch((err: unknown) => {
        this.#note(role, err)
      })
    }
  }

  async #fill(role: KubeObject): Promise<void> {
    const rules = gatheredRules(role, this.#roles.values())
    if (isDeepStrictEqual(rules, readRules(role))) return
    const filled = { ...role, rules: rules.map(writeRule) }
    const { resourceVersion } = role.metadata
    const options = resourceVersion ? { resourceVersion } : {}
    const written = await this.#view.write('update', filled, options, this.#stop.signal)
    this.#roles.set(written.metadata.name, written)
    this.#schedule() // others may gather from this one
  }

  #note(role: KubeObject, err: unknown): void {
    // Whoever changed or deleted it has sent an event, which brings it back here.
    if (hasReason(err, 'Conflict', 'NotFound')) return
    if (this.#stop.signal.aborted) return
    this.#log.error({ err, clusterRole: role.metadata.name }, 'cannot fill aggregated role')
    const timer = setTimeout(() => this.#schedule(), retryMs)
    timer.unref()
  }
}
