import type { ResourceAttributes } from '../core/index.ts'
import type { WantedIdentity } from './impersonation-headers.ts'
import { serviceAccountOf } from './service-account-name.ts'

/** What is done as somebody else. */
export interface ImpersonatedAction {
  readonly verb: string
  readonly resource?: ResourceAttributes
  readonly path?: string
}

/** The rights by which somebody may do one thing as somebody else, and nothing more. */
export interface ConstrainedRights {
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
export function constrainedRights(
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
