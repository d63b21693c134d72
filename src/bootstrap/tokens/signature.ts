import {
  audiencesOf,
  type CompactJws,
  hmacKey,
  isVerifiedBy,
  type JsonObject,
  member,
  parseClaims,
  parseDetachedJws,
  signCompactJws,
  signDetachedJws,
  TokenRefused,
} from '../../jose/index.ts'
import { type BootstrapToken, isTokenId } from './bootstrap-token.ts'

/** Signs bytes with a token, in the very form that kubeadm computes and compares. */
export const signWithToken = (bytes: Uint8Array | string, { id, secret }: BootstrapToken): string =>
  signDetachedJws({ kid: id }, bytes, hmacKey(secret, id))

/** Checks that bytes were signed with this token; throws TokenRefused. */
export function verifySignature(jws: string, bytes: Uint8Array, token: BootstrapToken): void {
  const parsed = parseDetachedJws(jws, bytes)
  const { kid, typ } = parsed.header
  // A request is signed with the same key: its signature must not pass for that of an answer.
  if (typ !== undefined) throw new TokenRefused('bad-header', 'the signature is one of a request')
  if (kid !== token.id)
    throw new TokenRefused('unknown-key', 'the signature was made with another token')
  if (!isVerifiedBy(parsed, hmacKey(token.secret, token.id)))
    throw new TokenRefused('bad-signature', 'the signature does not fit the token or the answer')
}

/** No request may be signed for longer: a replay is good for no more than this. */
const maxLifetimeSeconds = 120
/** The client's clock may be a minute off in either direction. */
const clientSeconds = 60
const leewaySeconds = 5

/** Proves knowledge of a token to a server that is not trusted yet, without showing the token. */
export function mintDiscoveryJwt(token: BootstrapToken, nowMs: number, clusterId?: string): string {
  const now = Math.floor(nowMs / 1000)
  // Without iat: a server would refuse one that is ahead of its clock, however little is left.
  const claims = {
    sub: token.id,
    exp: now + clientSeconds,
    ...(clusterId !== undefined && { aud: clusterId }),
  }
  // The order of the seed: typ, alg, kid.
  const header = { typ: 'JWT', alg: 'HS256', kid: token.id }
  return signCompactJws(header, JSON.stringify(claims), hmacKey(token.secret, token.id))
}

/** Whether a JWS is meant as a discovery request: its header names a bootstrap token. */
export function isDiscoveryJwt(jws: CompactJws): boolean {
  const { alg, kid, typ } = jws.header
  return typ === 'JWT' && alg === 'HS256' && kid !== undefined && isTokenId(kid)
}

/** What a discovery request is judged by. */
export interface JwtRules {
  readonly nowMs: number
  /** Who a request may be for; a request that names somebody else is refused. */
  readonly clusterId: string | undefined
}

/** Checks that a request was signed with this token, for us, and just now; throws TokenRefused. */
export function verifyDiscoveryJwt(jws: CompactJws, token: BootstrapToken, rules: JwtRules): void {
  if (!isVerifiedBy(jws, hmacKey(token.secret, token.id)))
    throw new TokenRefused('bad-signature', 'the request was not signed with the token it names')
  const claims = parseClaims(jws.payload)
  if (member(claims, 'sub') !== token.id || jws.header.kid !== token.id)
    throw new TokenRefused('bad-claims', 'the subject is not the id of the token')
  checkTimes(claims, rules.nowMs / 1000)
  const audiences = audiencesOf(claims)
  if (audiences && (rules.clusterId === undefined || !audiences.includes(rules.clusterId)))
    throw new TokenRefused('bad-claims', 'the request is for another cluster')
}

function checkTimes(claims: JsonObject, now: number): void {
  const exp = moment(claims, 'exp')
  if (exp === undefined) throw new TokenRefused('bad-claims', 'the request has no end (exp)')
  if (exp <= now) throw new TokenRefused('expired', 'the request has expired')
  if (exp > now + maxLifetimeSeconds)
    throw new TokenRefused('lives-too-long', 'the request is valid for more than two minutes')
  const nbf = moment(claims, 'nbf')
  if (nbf !== undefined && nbf > now + leewaySeconds)
    throw new TokenRefused('not-yet-valid', 'the request is not valid yet')
  const iat = moment(claims, 'iat')
  if (iat === undefined) return
  if (iat > now + leewaySeconds)
    throw new TokenRefused('not-yet-valid', 'the request was made in the future')
  if (exp - iat > maxLifetimeSeconds)
    throw new TokenRefused('lives-too-long', 'the request was made for more than two minutes')
}

/** Fractions of seconds are legal in a JWT. */
function moment(claims: JsonObject, name: string): number | undefined {
  const value = member(claims, name)
  if (value === undefined) return undefined
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw new TokenRefused('bad-claims', `the claim ${name} is not a time in seconds`)
}
