import type { TokenAuthenticator } from '../../authn/index.ts'
import {
  type Authentication,
  type Clock,
  type Logger,
  type UserInfo,
  unauthorized,
} from '../../core/index.ts'
import {
  type JsonObject,
  member,
  TokenRefused,
  textClaim,
  VerifiedTokenCache,
} from '../../jose/index.ts'
import {
  createTokenVerifier,
  IssuerUnavailable,
  type SigningAlgorithm,
  TokenRejected,
  type VerifiedToken,
} from '../relying-party/index.ts'
import { unverifiedIssuer } from '../tokens/claims.ts'

/** How claims are mapped to a user; the options have the meaning of the flags of kube-apiserver. */
export interface ClaimRules {
  readonly issuer: string
  readonly usernameClaim: string
  /** Absent: the issuer and `#`, or none for `email`; `-`: none. */
  readonly usernamePrefix?: string | undefined
  readonly groupsClaim?: string | undefined
  readonly groupsPrefix?: string | undefined
  /** Claims that must have exactly this value. */
  readonly requiredClaims: ReadonlyMap<string, string>
}

/** The user of verified claims; throws TokenRefused where kube-apiserver rejects. */
export function userOfClaims(claims: JsonObject, rules: ClaimRules): UserInfo {
  requireClaims(claims, rules.requiredClaims)
  const name = textClaim(claims, rules.usernameClaim)
  if (rules.usernameClaim === 'email') requireVerifiedEmail(claims)
  const jti = member(claims, 'jti')
  return {
    username: `${usernamePrefixOf(rules)}${name}`,
    groups: groupsOf(claims, rules),
    ...(typeof jti === 'string' &&
      jti !== '' && { extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${jti}`] } }),
  }
}

function usernamePrefixOf({ issuer, usernameClaim, usernamePrefix }: ClaimRules): string {
  if (usernamePrefix === '-') return ''
  if (usernamePrefix !== undefined && usernamePrefix !== '') return usernamePrefix
  return usernameClaim === 'email' ? '' : `${issuer}#`
}

/** An unverified address may belong to another user. */
function requireVerifiedEmail(claims: JsonObject): void {
  const verified = member(claims, 'email_verified')
  if (verified !== undefined && verified !== true) throw refused('the email is not verified')
}

function groupsOf(claims: JsonObject, { groupsClaim, groupsPrefix = '' }: ClaimRules): string[] {
  const value =
    groupsClaim === undefined || groupsClaim === '' ? undefined : member(claims, groupsClaim)
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.map((group) => {
    if (typeof group !== 'string') throw refused('the groups are not a list of strings')
    return `${groupsPrefix}${group}`
  })
}

function requireClaims(claims: JsonObject, required: ClaimRules['requiredClaims']): void {
  for (const [name, text] of required) {
    if (member(claims, name) !== text)
      throw refused(`the claim ${name} does not have the required value`)
  }
}

const refused = (why: string): TokenRefused => new TokenRefused('bad-claims', why)

/** A trusted provider and the mapping of its claims. */
export interface OidcUsersOptions extends ClaimRules {
  readonly clientId: string
  readonly algorithms: readonly SigningAlgorithm[]
  readonly caPem?: string | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** Authenticates ID tokens of an OIDC provider. The provider is not contacted before the first token. */
export function oidcUsers(options: OidcUsersOptions): TokenAuthenticator {
  const { issuer, clientId, algorithms, caPem, clock, log } = options
  const verifier = createTokenVerifier({
    issuer,
    audience: clientId,
    algorithms,
    caPem,
    clock,
    log,
    // The operator has configured the provider, and many are in the same network.
    allowPrivateAddresses: true,
  })
  // The same object for each use: caches are keyed by it.
  const known = new VerifiedTokenCache<Authentication>({ clock })
  return {
    name: 'oidc',
    authenticateToken: async (token) => {
      if (unverifiedIssuer(token) !== issuer) return undefined
      try {
        return await known.get(token, [], async () => {
          const verified = await verifier.verify(token)
          return { value: authenticationOf(verified, options), until: verified.expiresAt }
        })
      } catch (error) {
        if (
          error instanceof TokenRejected ||
          error instanceof TokenRefused ||
          error instanceof IssuerUnavailable
        )
          throw unauthorized(`oidc: ${error.message}`)
        throw error
      }
    },
  }
}

function authenticationOf(
  { claims, expiresAt, id }: VerifiedToken,
  options: OidcUsersOptions,
): Authentication {
  // No leeway for users, as in kube-apiserver.
  if (options.clock.now() > expiresAt) throw new TokenRefused('expired', 'the token has expired')
  return {
    method: 'oidc',
    user: userOfClaims(claims, options),
    expiresAt,
    ...(id !== undefined && { credential: { type: 'token' as const, id } }),
  }
}
