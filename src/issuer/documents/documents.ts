import { createHash } from 'node:crypto'
import { type KeySet, refusePrivateMembers, renderJwks } from '../../jose/index.ts'

/** What a document is called as long as its bytes stay the same. */
export const entityTagOf = (body: Uint8Array): string =>
  `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`

/** Whether `If-None-Match` says that the client has this document; a proxy that packs documents weakens their names. */
export const isKnownByClient = (header: string | undefined, tag: string): boolean =>
  header !== undefined &&
  header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag)

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
