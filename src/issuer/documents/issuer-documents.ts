import { type KeySet, refusePrivateMembers, renderJwks } from '../../jose/index.ts'
import { entityTagOf } from './entity-tag.ts'

/** A document as it is served: finished bytes and their headers. */
export interface IssuerDocument {
  readonly body: Buffer
  readonly contentType: string
  readonly etag: string
}

/** What outsiders are told about an issuer. */
export interface IssuerFacts {
  /** Byte for byte the `iss` of its tokens. */
  readonly issuer: string
  readonly jwksUri: string
  /** For parsers that insist on members which have no meaning here. */
  readonly hasPlaceholders?: boolean
}

/** Where the documents are, below the issuer and on the server itself. */
export const discoveryPath = '/.well-known/openid-configuration'
export const jwksPath = '/openid/v1/jwks'

/** The two documents; they are made together so that they never disagree. */
export interface IssuerDocuments {
  readonly discovery: IssuerDocument
  readonly jwks: IssuerDocument
}

/** Renders both documents; refuses to make one that holds anything private. */
export function renderIssuerDocuments(facts: IssuerFacts, keys: KeySet): IssuerDocuments {
  return {
    discovery: finished(discoveryBytes(facts, keys), 'application/json'),
    jwks: finished(renderJwks(keys.keys), 'application/jwk-set+json'),
  }
}

/** Nobody logs in here; a URN says so and is still a URL to strict parsers. */
const noSuchEndpoint = 'urn:kubernetes:programmatic_authorization'

function discoveryBytes(facts: IssuerFacts, keys: KeySet): Buffer {
  const bytes = Buffer.from(
    JSON.stringify({
      issuer: facts.issuer,
      jwks_uri: facts.jwksUri,
      ...(facts.hasPlaceholders && {
        authorization_endpoint: noSuchEndpoint,
        token_endpoint: noSuchEndpoint,
      }),
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: keys.algorithms,
    }),
  )
  refusePrivateMembers(bytes)
  return bytes
}

const finished = (body: Buffer, contentType: string): IssuerDocument => ({
  body,
  contentType,
  etag: entityTagOf(body),
})
