import { isDeepStrictEqual } from 'node:util'
import { createInformer, type Informer } from '../client/index.ts'
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
  readonly #stop = new AbortController()
  #roles: Informer | undefined
  #running: Promise<void> = Promise.resolve()
  #scheduled = false

  constructor(view: ClusterView, log: Logger) {
    this.#view = view
    this.#log = log.child({ component: this.name })
  }

  /** Resolves once the roles that were there are filled. */
  async start(): Promise<void> {
    const roles = createInformer({
      view: this.#view,
      kind: rbacKinds.clusterRole,
      log: this.#log,
      signal: this.#stop.signal,
    })
    this.#roles = roles
    roles.onChange(() => this.#schedule(roles))
    await roles.synced
    await this.#idle()
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stop.abort()
    const ended = Promise.all([this.#roles?.ended, this.#running])
    await Promise.race([ended, aborted(deadline)])
  }

  /** Many changes in a row make one pass. */
  #schedule(roles: Informer): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#running = this.#running.then(async () => {
      this.#scheduled = false
      await this.#fillAll(roles)
    })
  }

  async #idle(): Promise<void> {
    const latest = this.#running
    await latest
    if (latest !== this.#running) await this.#idle()
  }

  async #fillAll(roles: Informer): Promise<void> {
    for (const { metadata } of roles.list()) {
      const role = roles.get(metadata)
      if (this.#stop.signal.aborted || !role || !readRoleSelectors(role)) continue
      await this.#fill(role, roles).catch((err: unknown) => {
        this.#retryLater(role, roles, err)
      })
    }
  }

  async #fill(role: KubeObject, roles: Informer): Promise<void> {
    const rules = gatheredRules(role, roles.list())
    if (isDeepStrictEqual(rules, readRules(role))) return
    const filled = { ...role, rules: rules.map(writeRule) }
    const { resourceVersion } = role.metadata
    const options = resourceVersion ? { resourceVersion } : {}
    const written = await this.#view.write('update', filled, options, this.#stop.signal)
    roles.applied(written)
    this.#schedule(roles) // others may gather from this one
  }

  #retryLater(role: KubeObject, roles: Informer, err: unknown): void {
    // The event of the change or deletion schedules another pass.
    if (hasReason(err, 'Conflict', 'NotFound')) return
    if (this.#stop.signal.aborted) return
    this.#log.error({ err, clusterRole: role.metadata.name }, 'cannot fill aggregated role')
    const timer = setTimeout(() => this.#schedule(roles), retryMs)
    timer.unref()
  }
}
