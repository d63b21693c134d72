import { type AlgorithmKey, isSignedBy, signBytes, signBytesAside } from './algorithms.ts'
import { TokenRefused } from './errors.ts'
import { type JsonObject, member, parseJsonObject } from './strict-json.ts'

/** Decodes base64url; undefined unless the text is the one canonical spelling of its bytes. */
export function decodeBase64url(text: string): Buffer | undefined {
  // Node.js skips what it does not know and drops stray bits, so one signature would have many spellings.
  if (!/^[\w-]*$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/** More characters than any token needs: those of Kubernetes have about 1200. */
export const longestToken = 16 * 1024
const longestKid = 1024

/** A compact JWS that was taken apart and not yet verified. */
export interface CompactJws {
  readonly header: JwsHeader
  readonly payload: Buffer
  readonly signature: Buffer
  /** What the signature is over. */
  readonly input: Buffer
}

/** What the protected header says, of what we heed. */
export interface JwsHeader {
  readonly alg: string
  readonly kid?: string
  readonly typ?: string
  /** Every member; those that name keys or places of keys are never followed. */
  readonly members: JsonObject
}

/** Takes a compact JWS apart; throws TokenRefused unless every byte is as it must be. */
export function parseCompactJws(token: string): CompactJws {
  if (token.length > longestToken) throw new TokenRefused('too-large', 'the token is too long')
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

/** Takes a detached JWS (`header..signature`) apart and puts its payload in. */
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

/** Whether the JWS was signed with this key, by the key's own algorithm and no other. */
export const isVerifiedBy = (jws: CompactJws, key: AlgorithmKey): boolean =>
  jws.header.alg === key.alg && isSignedBy(key, jws.input, jws.signature)

/** Signs a payload; the header gets the key's algorithm first. */
export function signCompactJws(
  header: JsonObject,
  payload: Uint8Array | string,
  key: AlgorithmKey,
): string {
  const input = signingInput(encodeHeader(header, key), Buffer.from(payload))
  return `${input.toString('latin1')}.${signBytes(key, input).toString('base64url')}`
}

/** Signs a payload without holding up others; the header gets the key's algorithm first. */
export async function signCompactJwsAside(
  header: JsonObject,
  payload: Uint8Array | string,
  key: AlgorithmKey,
): Promise<string> {
  const input = signingInput(encodeHeader(header, key), Buffer.from(payload))
  const signature = await signBytesAside(key, input)
  return `${input.toString('latin1')}.${signature.toString('base64url')}`
}

/** Signs a payload that is sent on its own: `header..signature`. */
export function signDetachedJws(
  header: JsonObject,
  payload: Uint8Array | string,
  key: AlgorithmKey,
): string {
  const encoded = encodeHeader(header, key)
  const signature = signBytes(key, signingInput(encoded, Buffer.from(payload)))
  return `${encoded}..${signature.toString('base64url')}`
}

/** A header that names its algorithm keeps its order, which is then part of the signature. */
function encodeHeader(header: JsonObject, { alg }: AlgorithmKey): string {
  const whole = Object.hasOwn(header, 'alg') ? { ...header, alg } : { alg, ...header }
  return Buffer.from(JSON.stringify(whole)).toString('base64url')
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
  if (!members) throw new TokenRefused('bad-header', "the token's header is not one JSON object")
  const alg = member(members, 'alg')
  const kid = member(members, 'kid')
  const typ = member(members, 'typ')
  if (typeof alg !== 'string')
    throw new TokenRefused('bad-algorithm', 'the token names no algorithm')
  // An extension that must be understood, and we understand none.
  if (Object.hasOwn(members, 'crit') || Object.hasOwn(members, 'b64'))
    throw new TokenRefused('bad-header', 'the token demands an extension that is not supported')
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
  kid === undefined || (typeof kid === 'string' && kid !== '' && kid.length <= longestKid)
