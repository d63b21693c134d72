import { type AllowHttp, urlProblem } from '../../http/fetch/index.ts'
import {
  KeyRefused,
  KeySet,
  type KnownAlgorithm,
  member,
  parseJsonObject,
  parseProviderJwk,
} from '../../jose/index.ts'
import { maxKeys } from '../limits.ts'
import { IssuerUnavailable } from './errors.ts'

/** The URL of the discovery document of an issuer. */
export const discoveryUrlOf = (issuer: string): string =>
  `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`

/** Parses a discovery document and returns its `jwks_uri`; its `issuer` must be equal byte for byte. Throws IssuerUnavailable. */
export function readJwksUri(body: Uint8Array, issuer: string, allowHttp: AllowHttp): string {
  const document = parseJsonObject(body)
  if (!document)
    throw invalidDocument('the discovery document is not a JSON object without duplicate members')
  const documentIssuer = member(document, 'issuer')
  if (documentIssuer !== issuer)
    throw invalidDocument(
      `issuer mismatch: the discovery document has ${quoted(documentIssuer)}, expected ${quoted(issuer)}`,
    )
  const jwksUri = member(document, 'jwks_uri')
  if (typeof jwksUri !== 'string') throw invalidDocument('the discovery document has no jwks_uri')
  const problem = urlProblem(jwksUri, allowHttp)
  if (problem !== undefined)
    throw invalidDocument(`the jwks_uri of the discovery document ${problem}`)
  return jwksUri
}

/** Parses a key set for these algorithms; unsupported keys are skipped. Throws IssuerUnavailable if none is left. */
export function readKeySet(body: Uint8Array, accepted: readonly KnownAlgorithm[] = []): KeySet {
  const document = parseJsonObject(body)
  const entries = document && member(document, 'keys')
  if (!Array.isArray(entries))
    throw invalidDocument('the key set is not a JSON object with a list of keys')
  if (entries.length > maxKeys) throw invalidDocument(`the key set has more than ${maxKeys} keys`)
  const keys = entries.flatMap((entry: unknown) => parseProviderJwk(entry, accepted))
  if (keys.length === 0) throw invalidDocument('the key set has no usable key')
  try {
    return new KeySet(keys)
  } catch (error) {
    if (error instanceof KeyRefused)
      throw invalidDocument(`the key set is ambiguous: ${error.message}`)
    throw error
  }
}

const invalidDocument = (why: string): IssuerUnavailable =>
  new IssuerUnavailable('bad-document', why)

const quoted = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 256)) : 'none'
