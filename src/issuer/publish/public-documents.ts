import { createKubeClient, type Transport } from '../../client/index.ts'
import { CommandFailed, isRecord, type Logger, pause } from '../../core/index.ts'
import { FetchError, fetchDocument } from '../../http/fetch/index.ts'
import { parseJsonObject, parseJwk, refusePrivateMembers } from '../../jose/index.ts'
import { discoveryPath, jwksPath } from '../documents/documents.ts'
import { maxPublishedBytes, maxPublishFetchMs } from '../limits.ts'

/** A document as it is published. */
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

/** A document as it was received. */
export interface ReceivedDocument {
  readonly body: Buffer
  /** Its `Cache-Control` header. */
  readonly cacheControl?: string | undefined
}

const defaultCacheControl = 'public, max-age=3600'

/** A URL of the key set that replaces the one in the document. */
export interface PublishOptions {
  readonly jwksUri?: string | undefined
}

/** Checks documents before they are published; throws CommandFailed if relying parties could not use them or they have private keys. */
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
    cacheControl: cacheControl?.startsWith('public') ? cacheControl : defaultCacheControl,
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
  // A private key must not be published, even if the source has published it.
  refusePrivateMembers(body)
  const unusable = keys.filter((key: unknown) => !parseJwk(key) || !hasKid(key))
  if (unusable.length > 0)
    throw refused(`${unusable.length} of ${keys.length} keys cannot verify tokens`)
}

const hasKid = (key: unknown): boolean => isRecord(key) && typeof key['kid'] === 'string'

const refused = (why: string): CommandFailed =>
  new CommandFailed('DOCUMENTS_REFUSED', `nothing is published: ${why}`, {
    hint: 'check that the URL is that of an issuer and that it serves its own documents',
  })

/** Reads the current documents of an issuer. */
export type ReadDocuments = (signal: AbortSignal) => Promise<PublicDocuments>

const accept = 'application/json, application/jwk-set+json'

async function receive(
  transport: Transport,
  path: string,
  signal: AbortSignal,
): Promise<ReceivedDocument> {
  const client = createKubeClient({
    transport,
    timeoutMs: maxPublishFetchMs,
    maxAnswerBytes: maxPublishedBytes,
  })
  const response = await client.request({ method: 'GET', path, headers: { accept } }, signal)
  return { body: response.body, cacheControl: response.headers['cache-control'] }
}

/** Reads the documents from an API server, whatever their URLs. */
export function documentsOfServer(transport: Transport, options: PublishOptions): ReadDocuments {
  return async (signal) => {
    // The key set last: additional keys in it do no harm.
    const discovery = await receive(transport, discoveryPath, signal)
    return publicDocuments(discovery, await receive(transport, jwksPath, signal), options)
  }
}

/** Reads the documents from the URL of the issuer, as relying parties do. */
export function documentsOfIssuer(
  issuer: string,
  caPem: string | undefined,
  options: PublishOptions,
): ReadDocuments {
  const fetchFrom = (url: string, signal: AbortSignal): Promise<ReceivedDocument> =>
    fetchFromIssuer(new URL(url), { issuer, caPem, signal })
  return async (signal) => {
    const discovery = await fetchFrom(`${issuer.replace(/\/$/, '')}${discoveryPath}`, signal)
    const named = parseJsonObject(discovery.body)?.['jwks_uri']
    const isUrl = typeof named === 'string' && URL.canParse(named)
    return publicDocuments(discovery, await fetchFrom(isUrl ? named : issuer, signal), options)
  }
}

async function fetchFromIssuer(
  url: URL,
  { issuer, caPem, signal }: { issuer: string; caPem: string | undefined; signal: AbortSignal },
): Promise<ReceivedDocument> {
  try {
    const { status, headers, body } = await fetchDocument(url, {
      headers: { accept },
      ...(caPem !== undefined && { tls: { ca: caPem } }),
      timeoutMs: maxPublishFetchMs,
      maxBytes: maxPublishedBytes,
      signal,
    })
    if (status === 200) return { body, cacheControl: headers['cache-control'] }
    throw badStatus(issuer, status)
  } catch (error) {
    if (!(error instanceof FetchError)) throw error
    const hint =
      error.code === 'untrusted'
        ? 'if its certificate is signed by a private CA, add --certificate-authority FILE'
        : 'check the URL of the issuer and whether its server is running'
    throw new CommandFailed('CLIENT_CONNECTION_FAILED', error.message, { hint, cause: error })
  }
}

const badStatus = (issuer: string, status: number): CommandFailed =>
  status === 401 || status === 403
    ? new CommandFailed(
        'DOCUMENTS_NOT_PUBLIC',
        `${issuer} does not serve the documents of an issuer without a credential (status ${status})`,
        { hint: 'give a kubeconfig of the cluster instead of the URL: --from FILE' },
      )
    : new CommandFailed(
        'DOCUMENTS_REFUSED',
        `${issuer} has no documents of an issuer (status ${status})`,
        { hint: 'use the URL of the issuer exactly as in its tokens' },
      )

/** How documents are polled. */
export interface FollowDocumentsOptions {
  readonly read: ReadDocuments
  readonly everyMs: number
  readonly log: Logger
  /** Called after each read, whether changed or not. */
  readonly onRead: (documents: PublicDocuments) => void | Promise<void>
}

/** Reads the documents periodically until the signal aborts; errors are logged. */
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
      log.error({ err }, 'cannot read the documents of the issuer, keeping the previous ones')
    }
  }
}
