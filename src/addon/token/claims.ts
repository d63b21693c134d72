import { problemOfUserName, SallyportError } from '../../core/index.ts'
import {
  audiencesOf,
  checkTimes,
  type JsonObject,
  member,
  parseClaims,
  type RefusalCode,
  TokenRefused,
  textClaim,
} from '../../jose/index.ts'

/** Why an add-on token is not accepted; stable, for answers, logs and metrics. */
export type AddonRefusal =
  | RefusalCode
  | 'wrong-type'
  | 'wrong-issuer'
  | 'wrong-audience'
  | 'bad-signer'
  | 'keys-unavailable'

/** An add-on token is refused; the message says why without repeating any of it. */
export class AddonTokenRefused extends SallyportError {
  readonly code: AddonRefusal

  constructor(code: AddonRefusal, message: string) {
    super(message)
    this.code = code
  }

  /** What the strict reader of tokens found, as a refusal of this kind; any other error stays what it is. */
  static from(error: unknown): unknown {
    return error instanceof TokenRefused ? new AddonTokenRefused(error.code, error.message) : error
  }
}

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
  readonly maxLifetimeSeconds: number
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
    user: userClaim(claims),
    groups: textList(member(claims, 'groups') ?? [], 'groups'),
    audience: onlyAudience(claims),
    expiresAt,
    ...(uid !== undefined && { uid }),
    ...(extra !== undefined && { extra: readExtra(extra) }),
    ...(auditId !== undefined && { auditId }),
    ...(tokenId !== undefined && { tokenId }),
  }
}

function userClaim(claims: JsonObject): string {
  const name = textClaim(claims, 'sub')
  const problem = problemOfUserName(name)
  if (problem === undefined) return name
  throw new AddonTokenRefused('bad-claims', `the user name ${problem}`)
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

/** The `typ` of a token that tells an add-on its user: no other kind of token is taken for one, nor one for another. */
export const addonTokenType = 'k8s-addon+jwt'

/** The `iss` of such tokens unless it is set otherwise. */
export const addonTokenIssuer = 'sallyport.dev/addon'

/** How long a token lives: as the proposal has it, "say a minute". */
export const addonTokenLifetimeSeconds = 60

/** Where the keys of add-on tokens are published; never among those of service accounts. */
export const addonJwksPath = '/addon/v1/jwks'
/** Where a server is told to replace the key of add-on tokens. */
export const addonKeyRotationPath = '/addon/v1/keys/rotate'

/** The name of the API server that the certificate of a token's signer must bear. */
export const apiServerName = 'kubernetes.default.svc'

/** The audience of a token: the Service that it is for. */
export const addonAudience = (namespace: string, service: string): string =>
  `${namespace}/${service}`

/**
 * How a tunnel outlives the token that it was opened with. The guard names the tunnel in this header of its 101;
 * whoever opened it sends, before the token ends, a request with a fresh token of the same user and the name in
 * `renewTunnelHeader` to the same address. It is answered with 204 and never forwarded.
 */
export const tunnelHeader = 'Sallyport-Tunnel'

/** Names the tunnel that a fresh token is for. */
export const renewTunnelHeader = 'Sallyport-Renew-Tunnel'
