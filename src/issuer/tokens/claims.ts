import { isRecord, type UserInfo, wellKnown } from '../../core/index.ts'
import {
  isObject,
  type JsonObject,
  maxTokenLength,
  member,
  TokenRefused,
  textClaim,
} from '../../jose/index.ts'

/** An object in a token; by its uid, a later object of the same name is another one. */
export interface NamedObject {
  readonly name: string
  readonly uid: string
}

/** The kinds that a token can be bound to: it becomes invalid when they are deleted. */
export type BoundKind = 'Pod' | 'Secret' | 'Node'

/** The claims of a token about its workload. */
export interface ServiceAccountClaims {
  readonly namespace: string
  readonly serviceAccount: NamedObject
  readonly bound?: NamedObject & { readonly kind: BoundKind }
  /** The node of a bound Pod; for information only. */
  readonly node?: { readonly name: string; readonly uid?: string }
  /** From this second on the token is stale, but still valid. */
  readonly warnAfter?: number
}

const userPrefix = 'system:serviceaccount'

/** The user name of a service account. */
export const serviceAccountUser = (namespace: string, name: string): string =>
  `${userPrefix}:${namespace}:${name}`

/** A service account as a user, without the group `system:authenticated`. */
export const serviceAccountIdentity = (
  namespace: string,
  { name, uid }: NamedObject,
): UserInfo => ({
  username: serviceAccountUser(namespace, name),
  uid,
  groups: [wellKnown.serviceAccounts, `${wellKnown.serviceAccounts}:${namespace}`],
})

/** The claim `kubernetes.io`, its members in the order of Kubernetes. */
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

/** Parses the claims of a verified token strictly; throws TokenRefused. */
export function readServiceAccountClaims(claims: JsonObject): ServiceAccountClaims {
  const own = member(claims, 'kubernetes.io')
  if (!isObject(own)) throw bad('the claim kubernetes.io is missing')
  const namespace = textClaim(own, 'namespace')
  const serviceAccount = named(own, 'serviceaccount')
  if (!serviceAccount) throw bad('the token has no service account')
  if (textClaim(claims, 'sub') !== serviceAccountUser(namespace, serviceAccount.name))
    throw bad('the subject is not the service account of the token')
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

/** The uid is absent if the Node did not exist when the token was issued. */
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
 * The issuer of a token before verification, to choose its authenticator; undefined if it is not a JWT.
 */
export function unverifiedIssuer(token: string): string | undefined {
  if (typeof token !== 'string' || token.length > maxTokenLength) return undefined
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
