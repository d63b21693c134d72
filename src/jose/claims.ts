import { TokenRefused } from './errors.ts'
import { type JsonObject, member, parseJsonObject } from './strict-json.ts'

const registeredClaims = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'kubernetes.io'])

/** Parses a payload as claims; rejects names that another parser could read as registered ones. */
export function parseClaims(payload: Uint8Array): JsonObject {
  const claims = parseJsonObject(payload)
  if (!claims) throw new TokenRefused('bad-claims', 'the payload is not a JSON object')
  for (const name of Object.keys(claims)) {
    if (registeredClaims.has(name)) continue
    const folded = name.normalize('NFKC').toLowerCase()
    if (registeredClaims.has(folded))
      throw new TokenRefused('bad-claims', `claim name resembles the registered name ${folded}`)
  }
  return claims
}

/** A claim that must be a non-empty string. */
export function textClaim(claims: JsonObject, name: string): string {
  const value = member(claims, name)
  if (typeof value === 'string' && value !== '') return value
  throw new TokenRefused('bad-claims', `the claim ${name} is missing or not a string`)
}

/** A claim in whole seconds since 1970; undefined if absent. */
export function timeClaim(claims: JsonObject, name: string): number | undefined {
  const value = member(claims, name)
  if (value === undefined) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new TokenRefused('bad-claims', `the claim ${name} is not a time in whole seconds`)
}

/** The audiences of a token (`aud`), a string or a list of strings; undefined if absent. */
export function audiencesOf(claims: JsonObject): readonly string[] | undefined {
  const value = member(claims, 'aud')
  if (value === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const audiences = list.filter((item) => typeof item === 'string' && item !== '')
  if (audiences.length === list.length && list.length > 0) return audiences as readonly string[]
  throw new TokenRefused('bad-claims', 'the claim aud is neither a string nor a list of strings')
}

/** Limits for the times of a token. */
export interface TimeRules {
  readonly nowMs: number
  /** Accepted clock skew. */
  readonly leewaySeconds: number
  /** Maximum time from `iat` to `exp`. */
  readonly maxLifetimeSeconds?: number
  /** Whether `iat` is required. */
  readonly isIatRequired?: boolean
}

/** Checks `exp` (required), `nbf` and `iat`; throws TokenRefused. Returns the expiry in milliseconds. */
export function checkTimes(claims: JsonObject, rules: TimeRules): number {
  const now = rules.nowMs / 1000
  const exp = timeClaim(claims, 'exp')
  const nbf = timeClaim(claims, 'nbf') ?? 0
  const iat = timeClaim(claims, 'iat')
  if (exp === undefined) throw new TokenRefused('bad-claims', 'the token has no expiry (exp)')
  if (iat === undefined && rules.isIatRequired)
    throw new TokenRefused('bad-claims', 'the token has no time of issue (iat)')
  if (now - rules.leewaySeconds > exp) throw new TokenRefused('expired', 'the token has expired')
  const validFrom = Math.max(nbf, iat ?? 0)
  if (now + rules.leewaySeconds < validFrom)
    throw new TokenRefused('not-yet-valid', 'the token is not valid yet')
  if (rules.maxLifetimeSeconds !== undefined && exp - (iat ?? now) > rules.maxLifetimeSeconds)
    throw new TokenRefused('lives-too-long', 'the lifetime of the token is longer than allowed')
  return exp * 1000
}
