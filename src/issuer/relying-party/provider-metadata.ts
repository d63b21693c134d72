import {
  KeyRefused,
  KeySet,
  type KnownAlgorithm,
  member,
  parseJsonObject,
  parseProviderJwk,
} from '../../jose/index.ts'
import { IssuerUnavailable } from './errors.ts'
import { type FetchRules, problemOfUrl } from './fetch-document.ts'

/** Where the discovery document of an issuer is. */
export const discoveryUrlOf = (issuer: string): string =>
  `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`

/** Reads a discovery document; returns where the keys are. It must be the issuer's own, byte for byte. */
export function readJwksUri(
  body: Uint8Array,
  issuer: string,
  rules: Pick<FetchRules, 'allowsHttpOnLoopback'>,
): string {
  const document = parseJsonObject(body)
  if (!document) throw bad('the discovery document is not one JSON object without repeated members')
  const said = member(document, 'issuer')
  if (said !== issuer)
    throw bad(`the discovery document is of ${shown(said)} and not of ${shown(issuer)}`)
  const jwksUri = member(document, 'jwks_uri')
  if (typeof jwksUri !== 'string') throw bad('the discovery document has no jwks_uri')
  const problem = problemOfUrl(jwksUri, rules)
  if (problem !== undefined) throw bad(`the jwks_uri of the discovery document ${problem}`)
  return jwksUri
}

/** More keys than any issuer needs, and a limit that relying parties share. */
const mostKeys = 100

/** Reads a key set for these algorithms; keys of kinds that we do not know are left out, a set without any other is refused. */
export function readKeySet(body: Uint8Array, accepted: readonly KnownAlgorithm[] = []): KeySet {
  const document = parseJsonObject(body)
  const entries = document && member(document, 'keys')
  if (!Array.isArray(entries)) throw bad('the key set is not a JSON object with a list of keys')
  if (entries.length > mostKeys) throw bad(`the key set has more than ${mostKeys} keys`)
  const keys = entries.flatMap((entry: unknown) => parseProviderJwk(entry, accepted))
  if (keys.length === 0) throw bad('the key set has no key that can verify tokens')
  try {
    return new KeySet(keys)
  } catch (error) {
    if (error instanceof KeyRefused) throw bad(`the key set is ambiguous: ${error.message}`)
    throw error
  }
}

const bad = (why: string): IssuerUnavailable => new IssuerUnavailable('bad-document', why)

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 256)) : 'nobody'
