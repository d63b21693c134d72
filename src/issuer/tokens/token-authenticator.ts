import type { TokenAuthenticator } from '../../authn/index.ts'
import {
  type Authentication,
  type Clock,
  type ClusterView,
  goQuote,
  unauthorized,
} from '../../core/index.ts'
import {
  audiencesOf,
  checkTimes,
  type JsonObject,
  parseClaims,
  parseCompactJws,
  type RefusalCode,
  TokenRefused,
  textClaim,
  VerifiedTokenCache,
} from '../../jose/index.ts'
import type { IssuerNames } from '../documents/issuer-name.ts'
import type { IssuerKeys } from '../keys/key-ring.ts'
import { defaultLeewaySeconds as leewaySeconds, maxLifetimeSeconds } from '../limits.ts'
import { requireExisting } from './bound-object.ts'
import {
  readServiceAccountClaims,
  type ServiceAccountClaims,
  serviceAccountIdentity,
  unverifiedIssuer,
} from './claims.ts'

/** The state of a token that was used: valid, past its time of renewal, or a legacy token without an expiry. */
export type TokenUse = 'valid' | 'stale' | 'legacy'

/** What authentication depends on. */
export interface TokenAuthenticatorDeps {
  readonly view: ClusterView
  readonly keys: IssuerKeys
  readonly names: IssuerNames
  readonly clock: Clock
  /** Called for every token that was accepted. */
  readonly onUse?: (use: TokenUse) => void
}

interface Verified {
  readonly claims: ServiceAccountClaims
  /** The same object for each use: caches are keyed by it. */
  readonly authentication: Authentication
  readonly expiresAt: number
}

/** Authenticates tokens of service accounts. Signatures are cached; the objects of a token are looked up each time. */
export function serviceAccountTokens(deps: TokenAuthenticatorDeps): TokenAuthenticator {
  const verified = new VerifiedTokenCache<Verified>({ clock: deps.clock })
  deps.keys.onChange(() => verified.clear())
  return {
    name: 'service-account',
    authenticateToken: async (token, signal, audiences = []) => {
      const issuer = unverifiedIssuer(token)
      if (issuer === undefined || !deps.names.issuers.includes(issuer)) return undefined
      const requested = audiences.length > 0 ? audiences : deps.names.apiAudiences
      return orUnauthorized(async () => {
        const found = await verified.get(token, requested, async () => {
          const value = verify(token, requested, deps)
          return { value, until: value.expiresAt + leewaySeconds * 1000 }
        })
        await requireExisting(found.claims, deps, signal)
        return used(found, deps)
      })
    },
  }
}

/** Turns the rejection of a token into a 401, with its reason for the log and for TokenReviews. */
export async function orUnauthorized<Result>(authenticate: () => Promise<Result>): Promise<Result> {
  try {
    return await authenticate()
  } catch (error) {
    if (error instanceof TokenRefused)
      throw unauthorized(kubernetesMessages.get(error.code) ?? error.message)
    throw error
  }
}

/** The messages of Kubernetes, except those for invalid signatures, which are from a library. */
const kubernetesMessages: ReadonlyMap<RefusalCode, string> = new Map([
  ['expired', 'service account token has expired'],
  ['not-yet-valid', 'service account token is not valid yet'],
  ['unknown-key', 'invalid signature, no keys found'],
])

function verify(
  token: string,
  requested: readonly string[],
  { keys, clock, names }: TokenAuthenticatorDeps,
): Verified {
  const jws = parseCompactJws(token)
  if (jws.header.typ !== undefined && jws.header.typ.toUpperCase() !== 'JWT')
    throw new TokenRefused('bad-header', 'the token has another purpose (typ)')
  keys.current.accepted.verify(jws)
  const claims = parseClaims(jws.payload)
  if (!names.issuers.includes(textClaim(claims, 'iss')))
    throw new TokenRefused('bad-claims', 'the token has another issuer')
  const audiences = commonAudiences(audiencesOf(claims) ?? [], requested)
  const expiresAt = checkTimes(claims, {
    nowMs: clock.now(),
    leewaySeconds,
    maxLifetimeSeconds,
    isIatRequired: true,
  })
  const own = readServiceAccountClaims(claims)
  const jti = optionalText(claims, 'jti')
  return { claims: own, expiresAt, authentication: authentication(own, jti, audiences, expiresAt) }
}

/** The requested audiences that a token has, in the order of the request; throws if there is none. */
export function commonAudiences(
  present: readonly string[],
  requested: readonly string[],
): readonly string[] {
  const common = requested.filter((audience) => present.includes(audience))
  if (common.length > 0) return common
  const list = (audiences: readonly string[]) => `[${audiences.map(goQuote).join(' ')}]`
  throw new TokenRefused(
    'bad-claims',
    `token audiences ${list(present)} is invalid for the target audiences ${list(requested)}`,
  )
}

const optionalText = (claims: JsonObject, name: string): string | undefined =>
  Object.hasOwn(claims, name) ? textClaim(claims, name) : undefined

/** Counts the use; the use of a stale token is annotated for the audit log. */
function used({ claims, authentication }: Verified, deps: TokenAuthenticatorDeps): Authentication {
  const { warnAfter } = claims
  const overdue = warnAfter === undefined ? 0 : deps.clock.now() / 1000 - warnAfter
  deps.onUse?.(overdue > 0 ? 'stale' : 'valid')
  if (overdue <= 0) return authentication
  const { username } = authentication.user
  const note = `subject: ${username}, seconds after warning threshold: ${Math.round(overdue)}`
  return { ...authentication, auditNotes: { 'authentication.k8s.io/stale-token': note } }
}

function authentication(
  claims: ServiceAccountClaims,
  jti: string | undefined,
  audiences: readonly string[],
  expiresAt: number,
): Authentication {
  const { namespace, serviceAccount } = claims
  return {
    method: 'service-account',
    user: {
      ...serviceAccountIdentity(namespace, serviceAccount),
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
