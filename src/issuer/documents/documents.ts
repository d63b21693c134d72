import { createHash } from 'node:crypto'
import { type KeySet, refusePrivateMembers, renderJwks } from '../../jose/index.ts'

/** The entity tag of a document. */
export const entityTagOf = (body: Uint8Array): string =>
  `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`

/** Whether `If-None-Match` has this tag; proxies that compress make tags weak. */
export const isKnownByClient = (header: string | undefined, tag: string): boolean =>
  header !== undefined &&
  header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag)

/** A document and its headers. */
export interface IssuerDocument {
  readonly body: Buffer
  readonly contentType: string
  readonly etag: string
}

/** The content of the discovery document. */
export interface IssuerFacts {
  /** Byte for byte the `iss` of its tokens. */
  readonly issuer: string
  readonly jwksUri: string
  /** For parsers that require endpoints which do not exist here. */
  readonly hasPlaceholders?: boolean
}

/** The paths of the documents, below the issuer and on the API server. */
export const discoveryPath = '/.well-known/openid-configuration'
export const jwksPath = '/openid/v1/jwks'

/** The two documents, rendered together so that they are consistent. */
export interface IssuerDocuments {
  readonly discovery: IssuerDocument
  readonly jwks: IssuerDocument
}

/** Renders both documents; throws KeyRefused if one would have a private key. */
export function renderIssuerDocuments(facts: IssuerFacts, keys: KeySet): IssuerDocuments {
  return {
    discovery: documentOf(discoveryBytes(facts, keys), 'application/json'),
    jwks: documentOf(renderJwks(keys.keys), 'application/jwk-set+json'),
  }
}

/** There is no login; a URN is a valid URL for strict parsers. */
const placeholderEndpoint = 'urn:kubernetes:programmatic_authorization'

function discoveryBytes(facts: IssuerFacts, keys: KeySet): Buffer {
  const bytes = Buffer.from(
    JSON.stringify({
      issuer: facts.issuer,
      jwks_uri: facts.jwksUri,
      ...(facts.hasPlaceholders && {
        authorization_endpoint: placeholderEndpoint,
        token_endpoint: placeholderEndpoint,
      }),
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: keys.algorithms,
    }),
  )
  refusePrivateMembers(bytes)
  return bytes
}

const documentOf = (body: Buffer, contentType: string): IssuerDocument => ({
  body,
  contentType,
  etag: entityTagOf(body),
})
