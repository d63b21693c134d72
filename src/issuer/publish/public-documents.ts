import { createKubeClient, httpsTransport, type Transport } from '../../client/index.ts'
import { CommandFailed, isRecord, type Logger, pause } from '../../core/index.ts'
import { parseJsonObject, parseJwk, refusePrivateMembers } from '../../jose/index.ts'
import { discoveryPath, jwksPath } from '../documents/documents.ts'

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

/** Reads the documents of an issuer anew at each call. */
export type ReadDocuments = (signal: AbortSignal) => Promise<PublicDocuments>

const limits = { timeoutMs: 10_000, maxAnswerBytes: 256 * 1024 }

async function receive(
  transport: Transport,
  path: string,
  signal: AbortSignal,
): Promise<ReceivedDocument> {
  const client = createKubeClient({ transport, ...limits })
  const headers = { accept: 'application/json, application/jwk-set+json' }
  const answer = await client.request({ method: 'GET', path, headers }, signal)
  return { body: answer.body, cacheControl: answer.headers['cache-control'] }
}

/** Reads them from an API server, whatever address they name. */
export function documentsOfServer(transport: Transport, options: PublishOptions): ReadDocuments {
  return async (signal) => {
    // The key set last: one that has more keys than the other document knows of does no harm.
    const discovery = await receive(transport, discoveryPath, signal)
    return publicDocuments(discovery, await receive(transport, jwksPath, signal), options)
  }
}

/** Reads them as any relying party does, from the issuer's own address. */
export function documentsOfIssuer(
  issuer: string,
  caPem: string | undefined,
  options: PublishOptions,
): ReadDocuments {
  const transportTo = (server: string): Transport =>
    httpsTransport({ server, ...(caPem !== undefined && { caPem }) })
  const own = transportTo(issuer.replace(/\/$/, ''))
  return async (signal) => {
    const discovery = await receive(own, discoveryPath, signal)
    const named = parseJsonObject(discovery.body)?.['jwks_uri']
    const { origin, pathname } = new URL(typeof named === 'string' ? named : issuer)
    const keys = transportTo(origin)
    try {
      return publicDocuments(discovery, await receive(keys, pathname, signal), options)
    } finally {
      keys.destroy()
    }
  }
}

/** How documents are followed. */
export interface FollowDocumentsOptions {
  readonly read: ReadDocuments
  readonly everyMs: number
  readonly log: Logger
  /** Called with each reading, changed or not. */
  readonly onRead: (documents: PublicDocuments) => void | Promise<void>
}

/** Reads again and again until the signal aborts; what cannot be read leaves all as it is, and is said. */
export async function followDocuments(
  { read, everyMs, log, onRead }: FollowDocumentsOptions,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await pause(everyMs, signal)
    if (signal.aborted) return
    try {
      await onRead(await read(signal))
    } catch (err) {
      if (signal.aborted) return
      log.error({ err }, 'cannot read the documents of the issuer; those from before stay')
    }
  }
}
