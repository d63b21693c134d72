import type { TokenAuthenticator } from '../../authn/index.ts'
import {
  type Authentication,
  type Clock,
  type ClusterView,
  isRecord,
  type KubeObject,
  unauthorized,
  wellKnownKinds,
} from '../../core/index.ts'
import {
  audiencesOf,
  checkTimes,
  type JsonObject,
  parseClaims,
  parseCompactJws,
  TokenRefused,
  textClaim,
  VerifiedTokenCache,
} from '../../jose/index.ts'
import type { IssuerNames } from '../documents/issuer-names.ts'
import type { IssuerKeys } from '../keys/issuer-keys.ts'
import { findBound } from './bound-object.ts'
import {
  readServiceAccountClaims,
  type ServiceAccountClaims,
  serviceAccountGroups,
  serviceAccountUser,
} from './service-account-claims.ts'

/** What tokens are judged by. */
export interface TokenAuthenticatorParts {
  readonly view: ClusterView
  readonly keys: IssuerKeys
  readonly names: IssuerNames
  readonly clock: Clock
  /** Called for a token that should have been renewed. */
  readonly onStale?: (claims: ServiceAccountClaims) => void
}

/** Clocks may differ by this much, and a deleted object counts for this much longer. */
const leewaySeconds = 60
/** A year is the longest that is ever issued. */
const longestSeconds = 366 * 24 * 3_600

interface Verified {
  readonly claims: ServiceAccountClaims
  readonly audiences: readonly string[]
  readonly expiresAt: number
  readonly jti: string | undefined
}

/** Knows the tokens of service accounts. Signatures are remembered, the objects behind a token are looked up each time. */
export function serviceAccountTokens(parts: TokenAuthenticatorParts): TokenAuthenticator {
  const verified = new VerifiedTokenCache<Verified>({ clock: parts.clock })
  parts.keys.onChange(() => verified.clear())
  return {
    name: 'service-account',
    authenticateToken: async (token, signal, audiences = []) => {
      if (!isOurs(token, parts.names.issuers)) return undefined
      const wanted = audiences.length > 0 ? audiences : parts.names.apiAudiences
      try {
        const found = await verified.get(token, wanted, async () => {
          const value = verify(token, wanted, parts)
          return { value, until: value.expiresAt + leewaySeconds * 1000 }
        })
        await requireAlive(found.claims, parts, signal)
        return authentication(found, parts)
      } catch (error) {
        if (error instanceof TokenRefused) throw unauthorized(error.message)
        throw error
      }
    },
  }
}

/** Looks at the issuer before anything is verified, so that tokens of others go on to others. */
function isOurs(token: string, issuers: readonly string[]): boolean {
  const parts = token.split('.')
  if (parts.length !== 3) return false
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString())
    return isRecord(claims) && issuers.some((issuer) => claims['iss'] === issuer)
  } catch {
    return false
  }
}

function verify(
  token: string,
  wanted: readonly string[],
  { keys, clock, names }: TokenAuthenticatorParts,
): Verified {
  const jws = parseCompactJws(token)
  keys.current.accepted.verify(jws)
  const claims = parseClaims(jws.payload)
  if (!names.issuers.includes(textClaim(claims, 'iss')))
    throw new TokenRefused('bad-claims', 'the token is of another issuer')
  const audiences = (audiencesOf(claims) ?? []).filter((audience) => wanted.includes(audience))
  if (audiences.length === 0)
    throw new TokenRefused('bad-claims', 'the token is for another audience')
  const expiresAt = checkTimes(claims, {
    nowMs: clock.now(),
    leewaySeconds,
    longestSeconds,
    isIatRequired: true,
  })
  const jti = optionalText(claims, 'jti')
  return { claims: readServiceAccountClaims(claims), audiences, expiresAt, jti }
}

const optionalText = (claims: JsonObject, name: string): string | undefined =>
  Object.hasOwn(claims, name) ? textClaim(claims, name) : undefined

async function requireAlive(
  { namespace, serviceAccount, bound }: ServiceAccountClaims,
  { view, clock }: TokenAuthenticatorParts,
  signal: AbortSignal,
): Promise<void> {
  const { name, uid } = serviceAccount
  const account = await view.get(wellKnownKinds.serviceAccount, { namespace, name }, signal)
  requireSame(account, uid, 'service account', clock)
  if (!bound) return
  const object = await findBound(view, bound, namespace, signal)
  requireSame(object, bound.uid, bound.kind, clock)
}

function requireSame(
  object: KubeObject | undefined,
  uid: string,
  what: string,
  clock: Clock,
): void {
  const gone = object?.metadata.deletionTimestamp
  const isGone = gone !== undefined && clock.now() > Date.parse(gone) + leewaySeconds * 1000
  if (object?.metadata.uid !== uid || isGone)
    throw new TokenRefused('bad-claims', `the ${what} of the token does not exist any more`)
}

function authentication(
  { claims, audiences, expiresAt, jti }: Verified,
  { clock, onStale }: TokenAuthenticatorParts,
): Authentication {
  const { namespace, serviceAccount, warnAfter } = claims
  if (warnAfter !== undefined && clock.now() / 1000 > warnAfter) onStale?.(claims)
  return {
    method: 'service-account',
    user: {
      username: serviceAccountUser(namespace, serviceAccount.name),
      uid: serviceAccount.uid,
      groups: serviceAccountGroups(namespace),
      extra: extraOf(claims, jti),
    },
    audiences,
    expiresAt: expiresAt + leewaySeconds * 1000,
    ...(jti !== undefined && { credential: { type: 'token' as const, id: jti } }),
  }
}

function extraOf(
  { bound, node }: ServiceAccountClaims,
  jti: string | undefined,
): Record<string, string[]> {
  const about = 'authentication.kubernetes.io'
  const where = bound?.kind === 'Node' ? bound : node
  return {
    ...(jti !== undefined && { [`${about}/credential-id`]: [`JTI=${jti}`] }),
    ...(where && { [`${about}/node-name`]: [where.name] }),
    ...(where?.uid !== undefined && { [`${about}/node-uid`]: [where.uid] }),
    ...(bound?.kind === 'Pod' && {
      [`${about}/pod-name`]: [bound.name],
      [`${about}/pod-uid`]: [bound.uid],
    }),
  }
}
