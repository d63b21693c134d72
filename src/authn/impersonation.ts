import {
  type ApiError,
  type Attributes,
  type Authentication,
  type AuthenticationRequest,
  type Authorizer,
  type Decision,
  machineIdentity,
  machineNameOf,
  type ResourceAttributes,
  type UserInfo,
  wellKnown,
} from '../core/index.ts'
import { constrainedRights, type ImpersonatedAction } from './constrained-impersonation.ts'
import { type WantedIdentity, wantedIdentity } from './impersonation-headers.ts'
import { scopeDecision } from './scope.ts'
import { serviceAccountOf } from './service-account-name.ts'

/** Who decides on impersonation, and how a refusal is worded. */
export interface ImpersonationOptions {
  readonly authorizer: Authorizer
  readonly denial: (attributes: Attributes, decision: Decision) => ApiError
}

/** Gives back who acts: somebody else if the request asks for it and may, the same object if not. */
export type Impersonate = (
  request: AuthenticationRequest,
  authentication: Authentication,
  action: ImpersonatedAction,
  signal: AbortSignal,
) => Authentication | Promise<Authentication>

/**
 * Acts on the `Impersonate-*` headers. Each name, group, uid and extra must be allowed by itself: for this one action,
 * or with the verb `impersonate` for all. Scope, credential and end of the real credential stay in force.
 */
export function impersonation(options: ImpersonationOptions): Impersonate {
  return (request, authentication, action, signal) => {
    const wanted = wantedIdentity(request)
    if (!wanted) return authentication
    return new Attempt(options, authentication, signal).actAs(wanted, action)
  }
}

class Attempt {
  readonly #options: ImpersonationOptions
  readonly #authentication: Authentication
  readonly #signal: AbortSignal

  constructor(options: ImpersonationOptions, authentication: Authentication, signal: AbortSignal) {
    this.#options = options
    this.#authentication = authentication
    this.#signal = signal
  }

  async actAs(wanted: WantedIdentity, action: ImpersonatedAction): Promise<Authentication> {
    if (!(await this.#mayForThis(wanted, action))) await this.#requireForAll(wanted)
    const { user: impersonator } = this.#authentication
    const user = identityOf(wanted)
    if (machineNameOf(user) !== undefined) throw this.#refuseMachine()
    return { ...this.#authentication, user, impersonator }
  }

  /** The mark of a machine counts because nobody else can write it, not even who may do everything. */
  #refuseMachine(): ApiError {
    const resource = { ...core, resource: 'groups', name: machineIdentity.group }
    const attributes = { user: this.#authentication.user, verb: 'impersonate', resource }
    return this.#options.denial(attributes, {
      allowed: false,
      reason: 'only a machine itself can act as a machine',
    })
  }

  async #mayForThis(wanted: WantedIdentity, action: ImpersonatedAction): Promise<boolean> {
    const rights = constrainedRights(wanted, action)
    if (!rights) return false
    const { actionVerb, identityVerb, items } = rights
    const questions = [
      { ...action, verb: actionVerb },
      ...items.map((resource) => ({ verb: identityVerb, resource })),
    ]
    for (const question of questions) {
      const { allowed } = await this.#decide({ user: this.#authentication.user, ...question })
      if (!allowed) return false
    }
    return true
  }

  async #requireForAll(wanted: WantedIdentity): Promise<void> {
    for (const resource of resourcesOf(wanted)) {
      const attributes = { user: this.#authentication.user, verb: 'impersonate', resource }
      const decision = await this.#decide(attributes)
      if (!decision.allowed) throw this.#options.denial(attributes, decision)
    }
  }

  async #decide(attributes: Attributes): Promise<Decision> {
    return (
      scopeDecision(this.#authentication, attributes) ??
      this.#options.authorizer.authorize(attributes, this.#signal)
    )
  }
}

const core = { group: '', version: 'v1', subresource: '', namespace: '' }
const authenticationGroup = { group: 'authentication.k8s.io', version: 'v1', namespace: '' }

function* resourcesOf(wanted: WantedIdentity): Iterable<ResourceAttributes> {
  const account = serviceAccountOf(wanted.username)
  if (account) yield { ...core, resource: 'serviceaccounts', ...account }
  else yield { ...core, resource: 'users', name: wanted.username }
  for (const name of wanted.groups) yield { ...core, resource: 'groups', name }
  for (const [subresource, values] of Object.entries(wanted.extra)) {
    for (const name of values) {
      yield { ...authenticationGroup, resource: 'userextras', subresource, name }
    }
  }
  if (wanted.uid !== undefined) {
    yield { ...authenticationGroup, resource: 'uids', subresource: '', name: wanted.uid }
  }
}

function identityOf({ username, uid, groups, extra }: WantedIdentity): UserInfo {
  return {
    username,
    ...(uid !== undefined && { uid }),
    groups: withBaseGroup(username, groups.length > 0 ? groups : knownGroups(username)),
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}

/** A service account's groups follow from its name; nobody else's do. */
function knownGroups(username: string): readonly string[] {
  const account = serviceAccountOf(username)
  if (!account) return []
  return [wellKnown.serviceAccounts, `${wellKnown.serviceAccounts}:${account.namespace}`]
}

function withBaseGroup(username: string, groups: readonly string[]): readonly string[] {
  const { authenticated, unauthenticated } = wellKnown
  if (username === wellKnown.anonymous) {
    return groups.includes(unauthenticated) ? groups : [...groups, unauthenticated]
  }
  if (groups.includes(authenticated) || groups.includes(unauthenticated)) return groups
  return [...groups, authenticated]
}
