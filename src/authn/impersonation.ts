import {
  type ApiError,
  type Attributes,
  type Authentication,
  type AuthenticationRequest,
  type Authorizer,
  type Decision,
  type ResourceAttributes,
  type UserInfo,
  wellKnown,
} from '../core/index.ts'
import { type WantedIdentity, wantedIdentity } from './impersonation-headers.ts'
import { scopeDecision } from './scope.ts'

/** Who decides on impersonation, and how a refusal is worded. */
export interface ImpersonationOptions {
  readonly authorizer: Authorizer
  readonly denial: (attributes: Attributes, decision: Decision) => ApiError
}

/** Gives back who acts: somebody else if the request asks for it and may, the same object if not. */
export type Impersonate = (
  request: AuthenticationRequest,
  authentication: Authentication,
  signal: AbortSignal,
) => Authentication | Promise<Authentication>

/**
 * Acts on the `Impersonate-*` headers. Each name, group, uid and extra must be allowed by itself
 * with the verb `impersonate`. Scope, credential and end of the real credential stay in force.
 */
export function impersonation(options: ImpersonationOptions): Impersonate {
  return (request, authentication, signal) => {
    const wanted = wantedIdentity(request)
    return wanted ? actAs(wanted, authentication, options, signal) : authentication
  }
}

async function actAs(
  wanted: WantedIdentity,
  authentication: Authentication,
  { authorizer, denial }: ImpersonationOptions,
  signal: AbortSignal,
): Promise<Authentication> {
  for (const resource of resourcesOf(wanted)) {
    const attributes = { user: authentication.user, verb: 'impersonate', resource }
    const decision =
      scopeDecision(authentication, attributes) ?? (await authorizer.authorize(attributes, signal))
    if (!decision.allowed) throw denial(attributes, decision)
  }
  return { ...authentication, user: identityOf(wanted), impersonator: authentication.user }
}

const authenticationGroup = { group: 'authentication.k8s.io', version: 'v1', namespace: '' }

function* resourcesOf(wanted: WantedIdentity): Iterable<ResourceAttributes> {
  const core = { group: '', version: 'v1', subresource: '', namespace: '' }
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

const part = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
const accountName = new RegExp(`^(${part}):(${part}(?:\\.${part})*)$`)

function serviceAccountOf(username: string) {
  if (!username.startsWith(wellKnown.serviceAccountUserPrefix)) return undefined
  const parts = accountName.exec(username.slice(wellKnown.serviceAccountUserPrefix.length))
  const [, namespace = '', name = ''] = parts ?? []
  if (name === '' || namespace.length > 63 || name.length > 253) return undefined
  return { namespace, name }
}
