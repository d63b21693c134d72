import {
  audiencesOf,
  checkTimes,
  type JsonObject,
  member,
  parseClaims,
  textClaim,
} from '../../jose/index.ts'
import { AddonTokenRefused } from './token-refused.ts'

/** The user that a verified token names. */
export interface AddonUser {
  readonly user: string
  readonly uid?: string
  /** Empty unless the add-on asked for them. */
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
  /** By which the audit log of the API server names the request; absent from tokens that are shared. */
  readonly auditId?: string
  readonly tokenId?: string
  /** The Service that it is for, as namespace/name. */
  readonly audience: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** What is demanded of claims. */
export interface ClaimRules {
  readonly issuer: string
  readonly nowMs: number
  readonly leewaySeconds: number
  readonly longestSeconds: number
}

/** Reads the claims of a token whose signature is good; throws TokenRefused or AddonTokenRefused. */
export function readAddonClaims(payload: Uint8Array, rules: ClaimRules): AddonUser {
  const claims = parseClaims(payload)
  if (textClaim(claims, 'iss') !== rules.issuer)
    throw new AddonTokenRefused('wrong-issuer', 'the token is from another issuer')
  const expiresAt = checkTimes(claims, { ...rules, isIatRequired: true })
  const uid = optionalText(claims, 'uid')
  const auditId = optionalText(claims, 'cid')
  const tokenId = optionalText(claims, 'jti')
  const extra = member(claims, 'k8s.extra')
  return {
    user: textClaim(claims, 'sub'),
    groups: textList(member(claims, 'groups') ?? [], 'groups'),
    audience: onlyAudience(claims),
    expiresAt,
    ...(uid !== undefined && { uid }),
    ...(extra !== undefined && { extra: readExtra(extra) }),
    ...(auditId !== undefined && { auditId }),
    ...(tokenId !== undefined && { tokenId }),
  }
}

/** Whoever gets a token that is for several could use it at the others. */
function onlyAudience(claims: JsonObject): string {
  const [audience, ...others] = audiencesOf(claims) ?? []
  if (audience !== undefined && others.length === 0) return audience
  throw new AddonTokenRefused('wrong-audience', 'the token is not for exactly one Service')
}

function optionalText(claims: JsonObject, name: string): string | undefined {
  return member(claims, name) === undefined ? undefined : textClaim(claims, name)
}

function textList(value: unknown, name: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [undefined]
  const texts = list.filter((item) => typeof item === 'string')
  if (texts.length === list.length) return texts
  throw new AddonTokenRefused('bad-claims', `the claim ${name} is not a list of strings`)
}

function readExtra(value: unknown): Readonly<Record<string, readonly string[]>> {
  const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isPlain) throw new AddonTokenRefused('bad-claims', 'the claim k8s.extra is not an object')
  const entries = Object.entries(value).map(([name, list]) => [name, textList(list, 'k8s.extra')])
  return Object.fromEntries(entries) as Readonly<Record<string, readonly string[]>>
}
