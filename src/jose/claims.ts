import { TokenRefused } from './errors.ts'
import { type JsonObject, member, parseJsonObject } from './strict-json.ts'

const registered = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'kubernetes.io'])

/** Reads a payload as claims; refuses names that others might take for registered ones. */
export function parseClaims(payload: Uint8Array): JsonObject {
  const claims = parseJsonObject(payload)
  if (!claims) throw new TokenRefused('bad-claims', 'the payload is not one JSON object')
  for (const name of Object.keys(claims)) {
    if (registered.has(name)) continue
    const plain = name.normalize('NFKC').toLowerCase()
    if (registered.has(plain))
      throw new TokenRefused('bad-claims', `a claim looks like ${plain} and is not`)
  }
  return claims
}

/** A claim that must be a string with something in it. */
export function textClaim(claims: JsonObject, name: string): string {
  const value = member(claims, name)
  if (typeof value === 'string' && value !== '') return value
  throw new TokenRefused('bad-claims', `the claim ${name} is missing or not a string`)
}

/** A claim in whole seconds since 1970; undefined when absent. */
export function timeClaim(claims: JsonObject, name: string): number | undefined {
  const value = member(claims, name)
  if (value === undefined) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new TokenRefused('bad-claims', `the claim ${name} is not a time in whole seconds`)
}

/** Whom a token is for: a string or a list of strings; undefined when absent. */
export function audiencesOf(claims: JsonObject): readonly string[] | undefined {
  const value = member(claims, 'aud')
  if (value === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const audiences = list.filter((item) => typeof item === 'string' && item !== '')
  if (audiences.length === list.length && list.length > 0) return audiences as readonly string[]
  throw new TokenRefused('bad-claims', 'the claim aud is neither a string nor a list of strings')
}

/** How strictly times are taken. */
export interface TimeRules {
  readonly nowMs: number
  /** How far the clocks of two machines may differ. */
  readonly leewaySeconds: number
  /** No token may be made for longer. */
  readonly longestSeconds?: number
  /** Whether a token must say when it was issued. */
  readonly isIatRequired?: boolean
}

/** Checks exp (required), nbf and iat; throws TokenRefused. Returns when the token ends, in milliseconds. */
export function checkTimes(claims: JsonObject, rules: TimeRules): number {
  const now = rules.nowMs / 1000
  const exp = timeClaim(claims, 'exp')
  const nbf = timeClaim(claims, 'nbf') ?? 0
  const iat = timeClaim(claims, 'iat')
  if (exp === undefined) throw new TokenRefused('bad-claims', 'the token has no end (exp)')
  if (iat === undefined && rules.isIatRequired)
    throw new TokenRefused('bad-claims', 'the token does not say when it was issued (iat)')
  if (now - rules.leewaySeconds > exp) throw new TokenRefused('expired', 'the token has expired')
  const begins = Math.max(nbf, iat ?? 0)
  if (now + rules.leewaySeconds < begins)
    throw new TokenRefused('not-yet-valid', 'the token is not valid yet')
  if (rules.longestSeconds !== undefined && exp - (iat ?? now) > rules.longestSeconds)
    throw new TokenRefused('lives-too-long', 'the token was made for longer than is allowed')
  return exp * 1000
}
