import { createInformer, type Informer } from '../client/index.ts'
import {
  type Attributes,
  type Authorizer,
  aborted,
  type ClusterView,
  type Component,
  type Decision,
  type Logger,
  neverFails,
  type RulesOfUser,
  type UserInfo,
} from '../core/index.ts'
import { type PolicyRule, rbacKinds } from './rbac-objects.ts'
import { PolicyIndex } from './rbac-policy.ts'
import type { RoleRules } from './rule-set.ts'

/** What a user has by RBAC. */
export interface UserRoles {
  readonly roles: readonly RoleRules[]
  readonly problem: string | undefined
}

const noOpinion: Decision = { allowed: false, reason: '' }

/** Decides by the roles and bindings of a cluster, which informers keep up to date from `start` to `stop`. */
export class RbacAuthorizer implements Authorizer, Component {
  readonly name = 'rbac'
  readonly failed = neverFails()
  readonly #view: ClusterView
  readonly #log: Logger
  readonly #policy = new PolicyIndex()
  readonly #stop = new AbortController()
  #informers: readonly Informer[] = []

  constructor(view: ClusterView, log: Logger) {
    this.#view = view
    this.#log = log.child({ component: 'rbac' })
  }

  /** Resolves once all roles and bindings are known. */
  async start(): Promise<void> {
    const options = { view: this.#view, log: this.#log, signal: this.#stop.signal }
    this.#informers = Object.values(rbacKinds).map((kind) => createInformer({ ...options, kind }))
    for (const informer of this.#informers)
      informer.onChange(({ before, after }) => {
        if (after) this.#policy.put(after)
        else if (before) this.#policy.remove(before)
      })
    await Promise.all(this.#informers.map(({ synced }) => synced))
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stop.abort()
    const ended = Promise.all(this.#informers.map((informer) => informer.ended))
    await Promise.race([ended, aborted(deadline)])
  }

  /** Allows what a rule of the user covers; has no opinion on the rest, never a denial. */
  authorize(attributes: Attributes): Decision {
    const cluster = this.#policy.clusterRulesOf(attributes.user)
    const found = cluster.find(attributes)
    if (found) return found
    const namespace = attributes.resource?.namespace ?? ''
    if (namespace === '') return unless(cluster.problems)
    const local = this.#policy.namespaceRulesOf(attributes.user, namespace)
    return local.find(attributes) ?? unless(cluster.problems, local.problems)
  }

  rulesFor(user: UserInfo, namespace: string): RulesOfUser {
    const { roles, problem } = this.rolesOf(user, namespace)
    return {
      ...splitRules(roles.flatMap(({ rules }) => rules)),
      incomplete: false,
      ...(problem !== undefined && { evaluationError: problem }),
    }
  }

  /** The roles that a user has in a namespace, and why some could not be found. */
  rolesOf(user: UserInfo, namespace: string): UserRoles {
    const cluster = this.#policy.clusterRulesOf(user)
    const local = namespace === '' ? undefined : this.#policy.namespaceRulesOf(user, namespace)
    const problems = [...cluster.problems, ...(local?.problems ?? [])]
    const granted = [...cluster.granted, ...(local?.granted ?? [])]
    return {
      roles: granted.map(({ role }) => role),
      problem: problems.length > 0 ? aggregate(problems) : undefined,
    }
  }
}

function unless(...problems: readonly (readonly string[])[]): Decision {
  const all = problems.flat()
  return all.length === 0 ? noOpinion : { allowed: false, reason: `RBAC: ${aggregate(all)}` }
}

const aggregate = (problems: readonly string[]): string =>
  problems.length === 1 ? `${problems[0]}` : `[${[...new Set(problems)].join(', ')}]`

function splitRules(rules: readonly PolicyRule[]) {
  return {
    resourceRules: rules
      .filter((rule) => rule.resources.length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames.length > 0 && { resourceNames }),
      })),
    nonResourceRules: rules
      .filter((rule) => rule.nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
  }
}
