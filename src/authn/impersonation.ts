import {
  type ApiError,
  type Attributes,
  type Authentication,
  type AuthenticationRequest,
  type Authorizer,
  badRequest,
  type Decision,
  machineIdentity,
  machineNameOf,
  problemOfUserName,
  type ResourceAttributes,
  serviceAccountOf,
  type UserInfo,
  wellKnown,
} from '../core/index.ts'
import { rawHeaderValues } from '../http/index.ts'
import { scopeDecision } from './chain.ts'
import { extraKey, groupValues, headerText, prefixedHeaders } from './request-header.ts'

/** What every impersonation header begins with. */
export const impersonationPrefix = 'impersonate-'
const extraPrefix = `${impersonationPrefix}extra-`

/** Whom a request wants to act as, as it was asked for. */
interface WantedIdentity {
  readonly username: string
  readonly uid: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

/** Reads the impersonation headers; `undefined` if there are none, 400 if they make no sense. */
function wantedIdentity(request: AuthenticationRequest): WantedIdentity | undefined {
  if (!asksForAnother(request)) return undefined
  const { rawHeaders } = request
  const username = single(rawHeaders, 'Impersonate-User')
  const uid = single(rawHeaders, 'Impersonate-Uid')
  const groups = rawHeaderValues(rawHeaders, 'Impersonate-Group').map((value) => text(value))
  if (groups.includes('')) throw badRequest('Impersonate-Group is empty')
  const extra = groupValues(
    prefixedHeaders(rawHeaders, extraPrefix).map(({ rest, value }) => [
      text(rest, extraKey),
      text(value),
    ]),
  )
  if (Object.hasOwn(extra, '')) throw badRequest('an Impersonate-Extra- header names no key')
  if (username !== undefined) {
    const problem = problemOfUserName(username)
    if (problem !== undefined) throw badRequest(`Impersonate-User: the user name ${problem}`)
    return { username, uid, groups, extra }
  }
  const asked = [
    ...(uid === undefined ? [] : ['a uid']),
    ...(groups.length > 0 ? ['groups'] : []),
    ...(Object.keys(extra).length > 0 ? ['extras'] : []),
  ]
  if (asked.length === 0) return undefined
  throw badRequest(`requested ${asked.join(' and ')} without impersonating a user name`)
}

function asksForAnother({ headers }: AuthenticationRequest): boolean {
  for (const name in headers) if (name.startsWith(impersonationPrefix)) return true
  return false
}

/**
 * Kubernetes takes the first of several values and ignores an empty one; both could make a proxy
 * that impersonates act with its own rights, so here they are errors.
 */
function single(rawHeaders: readonly string[], name: string): string | undefined {
  const [value, ...others] = rawHeaderValues(rawHeaders, name)
  if (others.length > 0) throw badRequest(`${name} is there more than once`)
  if (value === '') throw badRequest(`${name} is empty`)
  return value === undefined ? undefined : text(value)
}

function text(value: string, decode = headerText): string {
  try {
    return decode(value)
  } catch {
    throw badRequest('an impersonation header is not UTF-8, or its key is not percent-encoded')
  }
}

/** What is done as somebody else. */
interface ImpersonatedAction {
  readonly verb: string
  readonly resource?: ResourceAttributes
  readonly path?: string
}

/** The rights by which somebody may do one thing as somebody else, and nothing more. */
interface ConstrainedRights {
  /** On the action itself. */
  readonly actionVerb: string
  /** On each item of the identity. */
  readonly identityVerb: string
  readonly items: readonly ResourceAttributes[]
}

const kind = { group: 'authentication.k8s.io', version: 'v1', namespace: '', subresource: '' }
const nodePrefix = 'system:node:'

/**
 * The rights that constrained impersonation asks for (Kubernetes 1.36 has it on): one verb on the identity, another on
 * what is done with it. Nodes have modes of their own, which are not offered.
 */
function constrainedRights(
  wanted: WantedIdentity,
  { verb }: ImpersonatedAction,
): ConstrainedRights | undefined {
  if (wanted.username.startsWith(nodePrefix)) return undefined
  const account = serviceAccountOf(wanted.username)
  const isMore =
    wanted.groups.length > 0 || wanted.uid !== undefined || Object.keys(wanted.extra).length > 0
  // A service account is taken as it is: its groups follow from its name.
  if (account && isMore) return undefined
  const mode = account ? 'serviceaccount' : 'user-info'
  return {
    actionVerb: `impersonate-on:${mode}:${verb}`,
    identityVerb: `impersonate:${mode}`,
    items: account ? [{ ...kind, resource: 'serviceaccounts', ...account }] : itemsOf(wanted),
  }
}

function itemsOf({ username, uid, groups, extra }: WantedIdentity): ResourceAttributes[] {
  const extras = Object.entries(extra).flatMap(([subresource, names]) =>
    names.map((name) => ({ ...kind, resource: 'userextras', subresource, name })),
  )
  return [
    { ...kind, resource: 'users', name: username },
    ...groups.map((name) => ({ ...kind, resource: 'groups', name })),
    ...extras,
    ...(uid === undefined ? [] : [{ ...kind, resource: 'uids', name: uid }]),
  ]
}

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
