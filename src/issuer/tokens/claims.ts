import { isRecord, type UserInfo, wellKnown } from '../../core/index.ts'
import {
  isObject,
  type JsonObject,
  longestToken,
  member,
  TokenRefused,
  textClaim,
} from '../../jose/index.ts'

/** An object that a token names, so that another of the same name does not count. */
export interface NamedObject {
  readonly name: string
  readonly uid: string
}

/** The kinds of objects that a token can be bound to: it dies with them. */
export type BoundKind = 'Pod' | 'Secret' | 'Node'

/** What a token says about its workload. */
export interface ServiceAccountClaims {
  readonly namespace: string
  readonly serviceAccount: NamedObject
  readonly bound?: NamedObject & { readonly kind: BoundKind }
  /** Where a bound Pod runs; for information only. */
  readonly node?: { readonly name: string; readonly uid?: string }
  /** From this second on its use is worth a warning, although it is still valid. */
  readonly warnAfter?: number
}

const userPrefix = 'system:serviceaccount'

/** The user name of a service account. */
export const serviceAccountUser = (namespace: string, name: string): string =>
  `${userPrefix}:${namespace}:${name}`

/** A service account as a user, without the group that everybody is in. */
export const serviceAccountIdentity = (
  namespace: string,
  { name, uid }: NamedObject,
): UserInfo => ({
  username: serviceAccountUser(namespace, name),
  uid,
  groups: [wellKnown.serviceAccounts, `${wellKnown.serviceAccounts}:${namespace}`],
})

/** The member `kubernetes.io` of a token, its members in Kubernetes' order. */
export function privateClaims(claims: ServiceAccountClaims): JsonObject {
  const { namespace, serviceAccount, bound, node, warnAfter } = claims
  const boundTo = (kind: BoundKind) =>
    bound?.kind === kind && { [kind.toLowerCase()]: { name: bound.name, uid: bound.uid } }
  return {
    namespace,
    ...(node && { node }),
    ...boundTo('Node'),
    ...boundTo('Pod'),
    ...boundTo('Secret'),
    serviceaccount: { name: serviceAccount.name, uid: serviceAccount.uid },
    ...(warnAfter !== undefined && { warnafter: warnAfter }),
  }
}

/** Reads what a verified token says about its workload; refuses anything that is not exactly as it must be. */
export function readServiceAccountClaims(claims: JsonObject): ServiceAccountClaims {
  const own = member(claims, 'kubernetes.io')
  if (!isObject(own)) throw bad('the claim kubernetes.io is missing')
  const namespace = textClaim(own, 'namespace')
  const serviceAccount = named(own, 'serviceaccount')
  if (!serviceAccount) throw bad('the token names no service account')
  if (textClaim(claims, 'sub') !== serviceAccountUser(namespace, serviceAccount.name))
    throw bad('the subject is not the service account that the token names')
  const pod = named(own, 'pod')
  const secret = named(own, 'secret')
  const node = nodeOf(own)
  const bound = boundOf({ pod, secret, node })
  const warnAfter = member(own, 'warnafter')
  return {
    namespace,
    serviceAccount,
    ...(bound && { bound }),
    ...(pod && node && { node }),
    ...(typeof warnAfter === 'number' && { warnAfter }),
  }
}

const bad = (why: string): TokenRefused => new TokenRefused('bad-claims', why)

function named(claims: JsonObject, name: string): NamedObject | undefined {
  const value = member(claims, name)
  if (value === undefined) return undefined
  if (!isObject(value)) throw bad(`the claim ${name} is not an object`)
  return { name: textClaim(value, 'name'), uid: textClaim(value, 'uid') }
}

/** The uid of a node is left out when the Node was gone already. */
function nodeOf(claims: JsonObject): ServiceAccountClaims['node'] {
  const value = member(claims, 'node')
  if (value === undefined) return undefined
  if (!isObject(value)) throw bad('the claim node is not an object')
  const name = textClaim(value, 'name')
  return Object.hasOwn(value, 'uid') ? { name, uid: textClaim(value, 'uid') } : { name }
}

function boundOf(found: {
  readonly pod: NamedObject | undefined
  readonly secret: NamedObject | undefined
  readonly node: ServiceAccountClaims['node']
}): ServiceAccountClaims['bound'] {
  const { pod, secret, node } = found
  if (pod && secret) throw bad('the token is bound to two objects')
  if (pod) return { kind: 'Pod', ...pod }
  if (secret) return { kind: 'Secret', ...secret }
  if (!node) return undefined
  if (node.uid === undefined) throw bad('the token is bound to a node without its uid')
  return { kind: 'Node', name: node.name, uid: node.uid }
}

/**
 * Who a token says it is from, before anything is verified, so that tokens of others go on to
 * others; undefined for what is no such token.
 */
export function unverifiedIssuer(token: string): string | undefined {
  if (typeof token !== 'string' || token.length > longestToken) return undefined
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString())
    const issuer = isRecord(claims) ? claims['iss'] : undefined
    return typeof issuer === 'string' ? issuer : undefined
  } catch {
    return undefined
  }
}
