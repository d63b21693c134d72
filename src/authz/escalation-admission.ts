import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import {
  type Admission,
  type Authorizer,
  type ClusterView,
  forbidden,
  goQuote,
  goQuoteList,
  type KubeObject,
  notFound,
  type WriteAttempt,
} from '../core/index.ts'
import type { RbacAuthorizer, UserRoles } from './rbac-authorizer.ts'
import {
  type PolicyRule,
  type RoleRef,
  rbacGroup,
  rbacKinds,
  readRoleRef,
  readRoleSelectors,
  readRules,
} from './rbac-objects.ts'
import { compactRules, compareRules, describeRule } from './rule-set.ts'
import { isSuperuser } from './union.ts'

/** What the escalation check asks. */
export interface EscalationOptions {
  /** Decides on `escalate` and `bind`. */
  readonly authorizer: Authorizer
  /** Lists the rules that a user holds: RBAC itself, not a union. */
  readonly rbac: Pick<RbacAuthorizer, 'rolesOf'>
  /** Where a binding's role is read, fresh rather than from a cache. */
  readonly view: Pick<ClusterView, 'get'>
}

/**
 * Nobody grants what they do not have: a role may hold only rules of its writer, unless they may
 * `escalate` it; a binding may give only such a role, unless they may `bind` it.
 */
export function escalationAdmission(options: EscalationOptions): Admission {
  return async (attempt, signal) => {
    const { kind, subresource, operation, object, oldObject } = attempt
    if (kind.group !== rbacGroup || subresource !== '' || operation === 'delete' || !object) return
    if (isSuperuser(attempt.user) || (oldObject && onlyForCollector(object, oldObject))) return
    const check = new EscalationCheck(options, attempt, signal)
    switch (kind.resource) {
      case rbacKinds.role.resource:
      case rbacKinds.clusterRole.resource:
        return check.role(object)
      case rbacKinds.roleBinding.resource:
      case rbacKinds.clusterRoleBinding.resource:
        return check.binding(readRoleRef(object))
      default:
    }
  }
}

const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [], nonResourceURLs: [] },
  { verbs: ['*'], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: ['*'] },
]

/** Whoever tries it with thousands of rules learns enough from the first ones. */
const maxShownRules = 100
const maxMissingRules = 1_000
/** Between these other requests have their turn; a lookup takes less than a microsecond. */
const lookupsPerTurn = 2_000
/** More than any role that people write needs; what is beyond it is refused. */
const maxLookups = 500_000

class EscalationCheck {
  readonly #options: EscalationOptions
  readonly #attempt: WriteAttempt
  readonly #signal: AbortSignal

  constructor(options: EscalationOptions, attempt: WriteAttempt, signal: AbortSignal) {
    this.#options = options
    this.#attempt = attempt
    this.#signal = signal
  }

  async role(role: KubeObject): Promise<void> {
    const { kind, operation, name, oldObject } = this.#attempt
    const knownName = operation === 'create' ? '' : name
    if (await this.#may('escalate', kind.resource, knownName)) return
    await this.#refuseUnheld(readRules(role))
    // An aggregation gathers whatever others label later, so it takes every right to set one.
    if (gathers(role) || (oldObject && gathers(oldObject))) {
      if ((await this.#missing(everything)).length > 0) {
        throw this.#refusal('must have cluster-admin privileges to use the aggregationRule')
      }
    }
  }

  async binding(ref: RoleRef): Promise<void> {
    const kind = ref.kind === 'Role' ? rbacKinds.role : rbacKinds.clusterRole
    if (await this.#may('bind', kind.resource, ref.name)) return
    const { namespace } = this.#attempt
    const key = kind.namespaced ? { namespace, name: ref.name } : { name: ref.name }
    const role = await this.#options.view.get(kind, key, this.#signal)
    if (!role) throw notFound(this.#attempt.kind, ref.name)
    await this.#refuseUnheld(readRules(role))
  }

  async #may(verb: 'escalate' | 'bind', resource: string, name: string): Promise<boolean> {
    const { user, namespace } = this.#attempt
    const { allowed } = await this.#options.authorizer.authorize(
      {
        user,
        verb,
        resource: { group: rbacGroup, version: '*', resource, subresource: '', namespace, name },
      },
      this.#signal,
    )
    return allowed
  }

  #held(): UserRoles {
    const { user, namespace } = this.#attempt
    return this.#options.rbac.rolesOf(user, namespace)
  }

  /** The rights of `wanted` that the user does not have: all of them, or the first `maxMissingRules`. */
  async #missing(wanted: readonly PolicyRule[]): Promise<PolicyRule[]> {
    const missing: PolicyRule[] = []
    let turnEnds = lookupsPerTurn
    for (const step of compareRules(this.#held().roles, wanted)) {
      if ('missing' in step) missing.push(step.missing)
      else if (step.lookups > maxLookups)
        throw this.#refusal('the rules, and those of the user, are too many to be compared')
      else if (step.lookups > turnEnds) {
        await nextTurn()
        turnEnds = step.lookups + lookupsPerTurn
      }
      if (missing.length >= maxMissingRules) break
    }
    return missing
  }

  async #refuseUnheld(wanted: readonly PolicyRule[]): Promise<void> {
    const missing = await this.#missing(wanted)
    if (missing.length === 0) return
    const { problem } = this.#held()
    const { user } = this.#attempt
    const all = [...new Set(compactRules(missing).map(describeRule))].toSorted()
    const rest = all.length - maxShownRules
    const isCut = missing.length >= maxMissingRules
    const more = isCut ? 'and more' : `and ${rest} more`
    const lines = rest > 0 || isCut ? [...all.slice(0, maxShownRules), more] : all
    const who = `user ${goQuote(user.username)} (groups=${goQuoteList(user.groups)})`
    const problems = problem === undefined ? '' : `; resolution errors: [${problem}]`
    throw this.#refusal(
      `${who} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}${problems}`,
    )
  }

  #refusal(why: string) {
    return forbidden(this.#attempt.kind, this.#attempt.name, why)
  }
}

const gathers = (role: KubeObject): boolean => (readRoleSelectors(role)?.length ?? 0) > 0

/** The garbage collector edits owners and finalizers of roles whose rules it does not hold. */
function onlyForCollector(object: KubeObject, old: KubeObject): boolean {
  return isDeepStrictEqual(withoutCollectorFields(object), withoutCollectorFields(old))
}

const collectorFields = ['ownerReferences', 'finalizers', 'managedFields', 'resourceVersion']

function withoutCollectorFields({ metadata, ...object }: KubeObject): unknown {
  const kept = Object.entries(metadata).filter(([field]) => !collectorFields.includes(field))
  return { ...object, metadata: Object.fromEntries(kept) }
}
