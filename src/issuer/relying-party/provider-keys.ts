import type { Clock, Logger } from '../../core/index.ts'
import {
  type AddressTest,
  type AllowHttp,
  type CacheLimits,
  cacheLifetimeMs,
  FetchError,
  type FetchErrorCode,
  fetchDocument,
  type ResolveName,
  urlProblem,
} from '../../http/fetch/index.ts'
import { KeySet, type KeysById, type KnownAlgorithm, RemoteKeySet } from '../../jose/index.ts'
import { IssuerUnavailable, type UnavailableCode } from './errors.ts'
import { discoveryUrlOf, readJwksUri, readKeySet } from './provider-metadata.ts'

/** A document of an issuer, and what its server allows for caching it. */
export interface ProviderDocument {
  readonly body: Buffer
  /** The `Cache-Control` header. */
  readonly cacheControl?: string | undefined
  /** The `Age` header. */
  readonly ageSeconds?: number
}

/** A bearer token and the only origin (`https://host:port`) that it is sent to. */
export interface DocumentCredential {
  readonly origin: string
  readonly token: () => string | Promise<string>
}

/** From where documents are fetched, and how. */
export interface DocumentRules {
  readonly isAllowedAddress: AddressTest
  readonly allowHttp: AllowHttp
  /** CAs to trust instead of the public ones. */
  readonly caPem?: string | undefined
  readonly timeoutMs: number
  readonly maxBytes: number
  /** For documents that are not public. */
  readonly credential?: DocumentCredential | undefined
  readonly resolve?: ResolveName | undefined
}

const jsonType = /^application\/(?:[\w.-]+\+)?json(?:\s*;|$)/i

/** Fetches a JSON document of an issuer; throws IssuerUnavailable. */
export async function fetchProviderDocument(
  url: URL,
  rules: DocumentRules,
  signal?: AbortSignal,
): Promise<ProviderDocument> {
  const { credential, caPem, allowHttp } = rules
  const problem = urlProblem(url.href, allowHttp)
  if (problem !== undefined)
    throw new IssuerUnavailable('bad-document', `the URL ${url.origin} ${problem}`)
  const token = credential?.origin === url.origin ? (await credential.token()).trim() : undefined
  try {
    const { status, headers, body } = await fetchDocument(url, {
      ...rules,
      headers: {
        accept: 'application/json, application/jwk-set+json',
        'user-agent': 'sallyport-relying-party',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(caPem !== undefined && { tls: { ca: caPem } }),
      contentType: jsonType,
      ...(signal && { signal }),
    })
    if (status !== 200) throw badStatus(url, status)
    const ageSeconds = Number(headers.age ?? 0) || 0
    return { body, cacheControl: headers['cache-control'], ageSeconds }
  } catch (error) {
    throw error instanceof FetchError ? fetchFailed(error, url) : error
  }
}

const unavailableCodes: Readonly<Record<FetchErrorCode, UnavailableCode>> = {
  timeout: 'too-slow',
  'too-large': 'too-large',
  untrusted: 'untrusted-certificate',
  'blocked-address': 'blocked-address',
  redirected: 'redirected',
  'bad-content-type': 'bad-document',
  unreachable: 'unreachable',
}

function fetchFailed(error: FetchError, url: URL): IssuerUnavailable {
  const { code, status = 0, message } = error
  // The body of an error response may be of any size and speed.
  if (status >= 400) return badStatus(url, status)
  const hint = code === 'blocked-address' ? '; private addresses must be allowed explicitly' : ''
  return new IssuerUnavailable(unavailableCodes[code], `${message}${hint}`, { cause: error })
}

const badStatus = (url: URL, status: number): IssuerUnavailable =>
  new IssuerUnavailable('bad-status', `${url.host} responded with status ${status}`)

/** For how long keys are cached, and how often they are fetched. */
interface ProviderKeyLimits {
  /** For both documents together, also if `fetch` never ends. */
  readonly loadTimeoutMs: number
  readonly cache: CacheLimits
  readonly cooldownMs: number
  readonly retryMs: number
  readonly maxStaleMs: number
}

/** Whose keys are needed, and how they are fetched. */
export interface ProviderKeysOptions {
  readonly issuer: string
  /** The URL of the keys, if it is not taken from the discovery document. */
  readonly jwksUri?: string | undefined
  /** Below the issuer by default. */
  readonly discoveryUrl?: string | undefined
  readonly algorithms?: readonly KnownAlgorithm[] | undefined
  readonly allowHttp: AllowHttp
  readonly fetch: (url: URL, signal: AbortSignal) => Promise<ProviderDocument>
  readonly limits: ProviderKeyLimits
  readonly clock: Clock
  readonly log: Logger
}

/**
 * The published keys of an issuer, fetched when needed. The returned function gives the keys for a token that names
 * this key id; it throws IssuerUnavailable.
 */
export function providerKeys(
  options: ProviderKeysOptions,
): (kid: string | undefined) => Promise<KeySet> {
  const { issuer, clock, log, limits } = options
  const remote = new RemoteKeySet({
    load: loadKeys(options),
    timeoutMs: limits.loadTimeoutMs,
    cooldownMs: limits.cooldownMs,
    retryMs: limits.retryMs,
    graceMs: 0,
    maxStaleMs: limits.maxStaleMs,
    clock,
    log: log.child({ issuer }),
    signal: new AbortController().signal,
  })
  let latest: { readonly keys: KeysById; readonly set: KeySet } | undefined
  return async (kid) => {
    const keys = await remote.keysFor(kid)
    const isUnknown = kid !== undefined && !keys.has(kid)
    // While the issuer fails, an unknown key id may be a new key.
    if (keys.size === 0 || (isUnknown && remote.failure !== undefined))
      throw unavailable(remote.failure)
    if (latest?.keys !== keys) latest = { keys, set: new KeySet([...keys.values()].flat()) }
    return latest.set
  }
}

/** Failures of a `fetch` from outside become ours: they are not the fault of a token. */
function unavailable(cause: unknown): IssuerUnavailable {
  if (cause instanceof IssuerUnavailable) return cause
  const isTimeout = cause instanceof Error && cause.name === 'TimeoutError'
  return isTimeout
    ? new IssuerUnavailable('too-slow', 'cannot fetch the documents of the issuer in time', {
        cause,
      })
    : new IssuerUnavailable('unreachable', 'cannot fetch the documents of the issuer', { cause })
}

/** Where the keys are, by the discovery document or by an option. */
interface KeyLocation {
  readonly jwksUri: string
  /** Monotonic time. */
  readonly until: number
}

function loadKeys({ issuer, fetch, clock, limits, ...options }: ProviderKeysOptions) {
  let known: KeyLocation | undefined
  const locate = async (signal: AbortSignal): Promise<KeyLocation> => {
    const { jwksUri, discoveryUrl = discoveryUrlOf(issuer), allowHttp } = options
    if (jwksUri !== undefined) return { jwksUri, until: Number.POSITIVE_INFINITY }
    const document = await fetch(new URL(discoveryUrl), signal)
    const until = clock.monotonic() + cacheLifetimeMs(document, limits.cache)
    return { jwksUri: readJwksUri(document.body, issuer, allowHttp), until }
  }
  return async (
    signal: AbortSignal,
  ): Promise<{ readonly keys: KeysById; readonly maxAgeMs: number }> => {
    const last = known
    // Until this load succeeds: after a failure the keys may have moved.
    known = undefined
    const location = last && clock.monotonic() < last.until ? last : await locate(signal)
    const document = await fetch(new URL(location.jwksUri), signal)
    const { byId } = readKeySet(document.body, options.algorithms)
    known = location
    return { keys: byId, maxAgeMs: cacheLifetimeMs(document, limits.cache) }
  }
}
