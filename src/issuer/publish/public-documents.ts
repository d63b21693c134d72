import { CommandFailed, isRecord } from '../../core/index.ts'
import { parseJsonObject, parseJwk, refusePrivateMembers } from '../../jose/index.ts'

/** A document as outsiders are to get it. */
export interface PublicDocument {
  readonly body: Buffer
  readonly contentType: string
  readonly cacheControl: string
}

/** Both documents of an issuer, checked. */
export interface PublicDocuments {
  readonly issuer: string
  readonly jwksUri: string
  readonly discovery: PublicDocument
  readonly jwks: PublicDocument
}

/** Bytes that a server has sent. */
export interface ReceivedDocument {
  readonly body: Buffer
  /** How long it may be kept, as its server says. */
  readonly cacheControl?: string | undefined
}

const usualCacheControl = 'public, max-age=3600'

/** Where outsiders shall look for the key set, if not where the document says. */
export interface PublishOptions {
  readonly jwksUri?: string | undefined
}

/** Checks what is about to be published; throws CommandFailed for anything that outsiders could not use or must not see. */
export function publicDocuments(
  discovery: ReceivedDocument,
  jwks: ReceivedDocument,
  options: PublishOptions = {},
): PublicDocuments {
  const described = parseJsonObject(discovery.body)
  const issuer = described?.['issuer']
  const jwksUri = options.jwksUri ?? described?.['jwks_uri']
  if (!described || typeof issuer !== 'string' || typeof jwksUri !== 'string')
    throw refused('the discovery document has no issuer or no jwks_uri')
  requireKeys(jwks.body)
  refusePrivateMembers(discovery.body)
  const body =
    options.jwksUri === undefined
      ? discovery.body
      : Buffer.from(JSON.stringify({ ...described, jwks_uri: jwksUri }))
  const finished = (bytes: Buffer, contentType: string, { cacheControl }: ReceivedDocument) => ({
    body: bytes,
    contentType,
    cacheControl: cacheControl?.startsWith('public') ? cacheControl : usualCacheControl,
  })
  return {
    issuer,
    jwksUri,
    discovery: finished(body, 'application/json', discovery),
    jwks: finished(jwks.body, 'application/jwk-set+json', jwks),
  }
}

function requireKeys(body: Buffer): void {
  const set = parseJsonObject(body)
  const keys = set && Array.isArray(set['keys']) ? set['keys'] : []
  if (keys.length === 0) throw refused('the key set has no keys')
  // Whatever the source, a private key must not go out a second time.
  refusePrivateMembers(body)
  const unusable = keys.filter((key: unknown) => !parseJwk(key) || !hasKid(key))
  if (unusable.length > 0)
    throw refused(`${unusable.length} of ${keys.length} keys cannot be used to verify tokens`)
}

const hasKid = (key: unknown): boolean => isRecord(key) && typeof key['kid'] === 'string'

const refused = (why: string): CommandFailed =>
  new CommandFailed('DOCUMENTS_REFUSED', `nothing is published: ${why}`, {
    hint: 'is it the address of an issuer, and does it answer with its own documents?',
  })
