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
import { requireAlive } from './bound-object.ts'
import {
  readServiceAccountClaims,
  type ServiceAccountClaims,
  serviceAccountIdentity,
  unverifiedIssuer,
} from './claims.ts'

/** How the use of a token counts: fit for use, overdue for renewal, or of the old kind without an end. */
export type TokenUse = 'valid' | 'stale' | 'legacy'

/** What tokens are judged by. */
export interface TokenAuthenticatorParts {
  readonly view: ClusterView
  readonly keys: IssuerKeys
  readonly names: IssuerNames
  readonly clock: Clock
  /** Called for every token that was accepted. */
  readonly onUse?: (use: TokenUse) => void
}

/** Clocks may differ by this much. */
const leewaySeconds = 60
/** The most that can be asked for, as Kubernetes has it. */
const longestSeconds = 2 ** 32

interface Verified {
  readonly claims: ServiceAccountClaims
  /** The same object for each use, so that what is kept per identity is found again. */
  readonly authentication: Authentication
  readonly expiresAt: number
}

/** Knows the tokens of service accounts. Signatures are remembered, the objects behind a token are looked up each time. */
export function serviceAccountTokens(parts: TokenAuthenticatorParts): TokenAuthenticator {
  const verified = new VerifiedTokenCache<Verified>({ clock: parts.clock })
  parts.keys.onChange(() => verified.clear())
  return {
    name: 'service-account',
    authenticateToken: async (token, signal, audiences = []) => {
      const issuer = unverifiedIssuer(token)
      if (issuer === undefined || !parts.names.issuers.includes(issuer)) return undefined
      const wanted = audiences.length > 0 ? audiences : parts.names.apiAudiences
      return orUnauthorized(async () => {
        const found = await verified.get(token, wanted, async () => {
          const value = verify(token, wanted, parts)
          return { value, until: value.expiresAt + leewaySeconds * 1000 }
        })
        await requireAlive(found.claims, parts, signal)
        return used(found, parts)
      })
    },
  }
}

/** Makes the refusal of a token a 401 that keeps the reason for the log and for reviewers. */
export async function orUnauthorized<Result>(judge: () => Promise<Result>): Promise<Result> {
  try {
    return await judge()
  } catch (error) {
    if (error instanceof TokenRefused)
      throw unauthorized(kubernetesWords.get(error.code) ?? error.message)
    throw error
  }
}

/** What reviewers know from Kubernetes; its words for wrong signatures are those of a library and not taken over. */
const kubernetesWords: ReadonlyMap<RefusalCode, string> = new Map([
  ['expired', 'service account token has expired'],
  ['not-yet-valid', 'service account token is not valid yet'],
  ['unknown-key', 'invalid signature, no keys found'],
])

function verify(
  token: string,
  wanted: readonly string[],
  { keys, clock, names }: TokenAuthenticatorParts,
): Verified {
  const jws = parseCompactJws(token)
  if (jws.header.typ !== undefined && jws.header.typ.toUpperCase() !== 'JWT')
    throw new TokenRefused('bad-header', 'the token was made for another purpose (typ)')
  keys.current.accepted.verify(jws)
  const claims = parseClaims(jws.payload)
  if (!names.issuers.includes(textClaim(claims, 'iss')))
    throw new TokenRefused('bad-claims', 'the token is of another issuer')
  const audiences = commonAudiences(audiencesOf(claims) ?? [], wanted)
  const expiresAt = checkTimes(claims, {
    nowMs: clock.now(),
    leewaySeconds,
    longestSeconds,
    isIatRequired: true,
  })
  const own = readServiceAccountClaims(claims)
  const jti = optionalText(claims, 'jti')
  return { claims: own, expiresAt, authentication: authentication(own, jti, audiences, expiresAt) }
}

/** The audiences of a token that were asked for, in the order of the question; throws if there is none. */
export function commonAudiences(
  present: readonly string[],
  wanted: readonly string[],
): readonly string[] {
  const common = wanted.filter((audience) => present.includes(audience))
  if (common.length > 0) return common
  const list = (audiences: readonly string[]) => `[${audiences.map(goQuote).join(' ')}]`
  throw new TokenRefused(
    'bad-claims',
    `token audiences ${list(present)} is invalid for the target audiences ${list(wanted)}`,
  )
}

const optionalText = (claims: JsonObject, name: string): string | undefined =>
  Object.hasOwn(claims, name) ? textClaim(claims, name) : undefined

/** Notes the use; one that comes after the time to renew is told to the audit log. */
function used(
  { claims, authentication }: Verified,
  parts: TokenAuthenticatorParts,
): Authentication {
  const { warnAfter } = claims
  const overdue = warnAfter === undefined ? 0 : parts.clock.now() / 1000 - warnAfter
  parts.onUse?.(overdue > 0 ? 'stale' : 'valid')
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
