import { lookup } from 'node:dns/promises'
import type { Clock } from '../../core/index.ts'
import { addressTest, urlProblem } from '../../http/fetch/index.ts'
import {
  audiencesOf,
  decodeBase64url,
  isObject,
  type JsonObject,
  member,
  parseJsonObject,
  parseJwk,
} from '../../jose/index.ts'
import { discoveryUrlOf } from '../relying-party/provider-metadata.ts'
import { unverifiedIssuer } from '../tokens/claims.ts'
import { type Probe, probe } from './probe.ts'

/** A key as it is published, usable or not. */
export interface PublishedKey {
  readonly kid: string | undefined
  readonly kty: string
  /** Its `alg`, or the default of its type. */
  readonly alg: string
  readonly hasAlg: boolean
  readonly hasUse: boolean
  readonly isUsable: boolean
  /** Whether it has members of a private key. */
  readonly isPrivate: boolean
}

/** What relying parties can fetch from an issuer. */
export interface IssuerInspection {
  readonly issuer: string
  readonly url: URL
  readonly addresses: readonly string[]
  /** Whether all addresses are private. */
  readonly isInside: boolean
  readonly discovery: Probe
  readonly document: JsonObject | undefined
  readonly jwksUri: string | undefined
  readonly jwks: Probe | undefined
  readonly keys: readonly PublishedKey[]
}

/** How an issuer is inspected. */
export interface InspectOptions {
  readonly caPem?: string | undefined
  readonly clock: Clock
  /** Resolves a name; for tests. */
  readonly resolve?: (name: string) => Promise<readonly string[]>
  /** Fetches a document from these addresses; for tests. */
  readonly fetch?: typeof probe
}

/**
 * Fetches both documents of an issuer as relying parties do, without a credential. Each host is resolved once: only
 * checked addresses are connected to.
 */
export async function inspectIssuer(
  issuer: string,
  { caPem, clock, resolve = addressesInDns, fetch = probe }: InspectOptions,
): Promise<IssuerInspection> {
  const url = new URL(issuer)
  const addressesOf = ({ hostname }: URL): Promise<readonly string[]> =>
    resolve(hostname.replace(/^\[(.*)\]$/, '$1'))
  const addresses = await addressesOf(url)
  const discovery = await fetch(discoveryUrlOf(issuer), { addresses, caPem, clock })
  const document = discovery.status === 200 ? parseJsonObject(discovery.body) : undefined
  const named = document && member(document, 'jwks_uri')
  const jwksUri = typeof named === 'string' && !urlProblem(named, 'always') ? named : undefined
  const isInside = addresses.length > 0 && !addresses.some(isPublic)
  // A public document must not lead to a private address, and none to a metadata address.
  const isAllowed = isInside ? isPublicOrInside : isPublic
  const fetchKeys = async (keys: string): Promise<Probe> => {
    const found = await addressesOf(new URL(keys))
    const areAllowed = found.every((address) => isAllowed(address) || addresses.includes(address))
    return areAllowed ? fetch(keys, { addresses: found, caPem, clock }) : notFetched(keys, isInside)
  }
  const jwks = jwksUri === undefined ? undefined : await fetchKeys(jwksUri)
  return {
    issuer,
    url,
    addresses,
    isInside,
    discovery,
    document,
    jwksUri,
    jwks,
    keys: jwks?.status === 200 ? keysIn(jwks.body) : [],
  }
}

const isPublic = addressTest(false)
const isPublicOrInside = addressTest(true)

const notFetched = (url: string, isInside: boolean): Probe => ({
  url,
  contentType: '',
  cacheControl: '',
  body: Buffer.alloc(0),
  ms: 0,
  trust: 'none',
  problem: isInside
    ? 'its address is neither public nor private'
    : 'its address is private, but that of the issuer is public',
})

async function addressesInDns(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true }).catch(() => [])
  return found.map(({ address }) => address)
}

function keysIn(body: Uint8Array): PublishedKey[] {
  const set = parseJsonObject(body)
  const keys = set && member(set, 'keys')
  return Array.isArray(keys) ? keys.filter(isObject).map(publishedKey) : []
}

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const curveAlgorithms: Readonly<Record<string, string>> = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
}

function publishedKey(jwk: JsonObject): PublishedKey {
  const text = (name: string): string | undefined => {
    const value = member(jwk, name)
    return typeof value === 'string' ? value : undefined
  }
  const kty = text('kty') ?? ''
  const alg = text('alg')
  const defaultAlg = kty === 'RSA' ? 'RS256' : (curveAlgorithms[text('crv') ?? ''] ?? kty)
  return {
    kid: text('kid'),
    kty,
    alg: alg ?? defaultAlg,
    hasAlg: alg !== undefined,
    hasUse: text('use') !== undefined,
    isUsable: parseJwk(jwk) !== undefined,
    isPrivate: privateMembers.some((name) => Object.hasOwn(jwk, name)),
  }
}

/** The claims of a token before verification. */
export interface UnverifiedClaims {
  readonly issuer: string | undefined
  readonly audiences: readonly string[]
}

/** Reads issuer and audiences of a token to choose a verifier; they must not be trusted. */
export function readUnverifiedClaims(token: string): UnverifiedClaims {
  const payload = decodeBase64url(token.split('.')[1] ?? '')
  const claims = payload && parseJsonObject(payload)
  try {
    return { issuer: unverifiedIssuer(token), audiences: (claims && audiencesOf(claims)) ?? [] }
  } catch {
    return { issuer: unverifiedIssuer(token), audiences: [] }
  }
}
