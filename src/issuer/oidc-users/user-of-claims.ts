import type { UserInfo } from '../../core/index.ts'
import { type JsonObject, member, TokenRefused, textClaim } from '../../jose/index.ts'

/** How the claims of a provider become a user, with the meaning of Kubernetes' flags. */
export interface ClaimRules {
  readonly issuer: string
  readonly usernameClaim: string
  /** Nothing given: the issuer and `#`, but none for `email`; `-`: none. */
  readonly usernamePrefix?: string | undefined
  readonly groupsClaim?: string | undefined
  readonly groupsPrefix?: string | undefined
  /** Claims that must have exactly this text. */
  readonly requiredClaims: ReadonlyMap<string, string>
}

/** The user that verified claims are about; throws TokenRefused where Kubernetes refuses. */
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

/** An address that the provider has not checked could be anybody's. */
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
    if (member(claims, name) !== text) throw refused(`the claim ${name} is not the required one`)
  }
}

const refused = (why: string): TokenRefused => new TokenRefused('bad-claims', why)
