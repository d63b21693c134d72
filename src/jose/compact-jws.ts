import { type AlgorithmKey, isSignedBy, signBytes, signBytesAsync } from './algorithms.ts'
import { TokenRefused } from './errors.ts'
import { maxKidLength, maxTokenLength } from './limits.ts'
import { type JsonObject, member, parseJsonObject } from './strict-json.ts'

/** Decodes base64url; undefined unless the text is the canonical encoding of its bytes. */
export function decodeBase64url(text: string): Buffer | undefined {
  // Node.js skips invalid characters and trailing bits, so one signature would have many encodings.
  if (!/^[\w-]*$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/** A compact JWS that was parsed, but not verified. */
export interface CompactJws {
  readonly header: JwsHeader
  readonly payload: Buffer
  readonly signature: Buffer
  /** The signed bytes. */
  readonly input: Buffer
}

/** The members of the protected header that are used. */
export interface JwsHeader {
  readonly alg: string
  readonly kid?: string
  readonly typ?: string
  /** Every member; those with keys or URLs of keys (`jwk`, `jku`, `x5u`) are never used. */
  readonly members: JsonObject
}

/** Parses a compact JWS (RFC 7515 §3.1) strictly; throws TokenRefused. */
export function parseCompactJws(token: string): CompactJws {
  if (token.length > maxTokenLength) throw new TokenRefused('too-large', 'the token is too long')
  const parts = token.split('.')
  const [header = '', payload = '', signature = ''] = parts
  if (parts.length !== 3)
    throw new TokenRefused('malformed', `the token has ${parts.length} parts instead of three`)
  return {
    header: parseHeader(decodePart(header, 'header')),
    payload: decodePart(payload, 'payload'),
    signature: decodePart(signature, 'signature'),
    input: Buffer.from(`${header}.${payload}`, 'latin1'),
  }
}

/** Parses a detached JWS (`header..signature`, RFC 7515 appendix F) of this payload. */
export function parseDetachedJws(jws: string, payload: Uint8Array): CompactJws {
  const parts = jws.split('.')
  const [header = '', middle = '', signature = ''] = parts
  if (parts.length !== 3 || middle !== '')
    throw new TokenRefused('malformed', 'the signature is not of the form header..signature')
  return {
    header: parseHeader(decodePart(header, 'header')),
    payload: Buffer.from(payload),
    signature: decodePart(signature, 'signature'),
    input: signingInput(header, payload),
  }
}

/** Whether the JWS was signed with this key and its algorithm. */
export const isVerifiedBy = (jws: CompactJws, key: AlgorithmKey): boolean =>
  jws.header.alg === key.alg && isSignedBy(key, jws.input, jws.signature)

/** Signs a payload synchronously; `alg` of the header is that of the key. */
export function signCompactJws(
  header: JsonObject,
  payload: Uint8Array | string,
  key: AlgorithmKey,
): string {
  const input = signingInput(encodeHeader(header, key), Buffer.from(payload))
  return `${input.toString('latin1')}.${signBytes(key, input).toString('base64url')}`
}

/** Signs a payload, on the thread pool if the algorithm is slow; `alg` of the header is that of the key. */
export async function signCompactJwsAsync(
  header: JsonObject,
  payload: Uint8Array | string,
  key: AlgorithmKey,
): Promise<string> {
  const input = signingInput(encodeHeader(header, key), Buffer.from(payload))
  const signature = await signBytesAsync(key, input)
  return `${input.toString('latin1')}.${signature.toString('base64url')}`
}

/** Signs a payload that is sent separately: `header..signature`. */
export function signDetachedJws(
  header: JsonObject,
  payload: Uint8Array | string,
  key: AlgorithmKey,
): string {
  const encoded = encodeHeader(header, key)
  const signature = signBytes(key, signingInput(encoded, Buffer.from(payload)))
  return `${encoded}..${signature.toString('base64url')}`
}

/** A header with `alg` keeps its order of members, else `alg` is the first. */
function encodeHeader(header: JsonObject, { alg }: AlgorithmKey): string {
  const complete = Object.hasOwn(header, 'alg') ? { ...header, alg } : { alg, ...header }
  return Buffer.from(JSON.stringify(complete)).toString('base64url')
}

const signingInput = (header: string, payload: Uint8Array): Buffer =>
  Buffer.from(`${header}.${Buffer.from(payload).toString('base64url')}`, 'latin1')

function decodePart(text: string, name: string): Buffer {
  const bytes = decodeBase64url(text)
  if (!bytes) throw new TokenRefused('malformed', `the token's ${name} is not base64url`)
  return bytes
}

function parseHeader(bytes: Uint8Array): JwsHeader {
  const members = parseJsonObject(bytes)
  if (!members) throw new TokenRefused('bad-header', "the token's header is not a JSON object")
  const alg = member(members, 'alg')
  const kid = member(members, 'kid')
  const typ = member(members, 'typ')
  if (typeof alg !== 'string')
    throw new TokenRefused('bad-algorithm', 'the token has no algorithm (alg)')
  // RFC 7515 §4.1.11: unsupported critical extensions must be rejected, and none is supported.
  if (Object.hasOwn(members, 'crit') || Object.hasOwn(members, 'b64'))
    throw new TokenRefused('bad-header', 'the token requires an unsupported extension')
  if (!isKid(kid)) throw new TokenRefused('bad-header', "the token's kid is not a short string")
  if (typ !== undefined && typeof typ !== 'string')
    throw new TokenRefused('bad-header', "the token's typ is not a string")
  return {
    alg,
    members,
    ...(kid !== undefined && { kid }),
    ...(typ !== undefined && { typ }),
  }
}

const isKid = (kid: unknown): kid is string | undefined =>
  kid === undefined || (typeof kid === 'string' && kid !== '' && kid.length <= maxKidLength)
