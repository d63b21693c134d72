import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import {
  HeldChunks,
  responseTo,
  SallyportError,
  systemErrorCode,
  withinTime,
} from '../core/index.ts'
import { type AddressTest, isLoopback, isPlatformAddress } from './address-rules.ts'

/** Resolves the addresses of a name as `dns.lookup` does. */
export type ResolveName = (
  name: string,
  options: LookupOptions & { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Where http is allowed in place of https: nowhere, on loopback addresses, or everywhere (for diagnostics only). */
export type AllowHttp = 'never' | 'loopback' | 'always'

/** One request and its limits. */
export interface FetchDocumentOptions {
  readonly method?: 'GET' | 'POST'
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly tls?: {
    /** PEM of the CAs to trust instead of those of Node.js. */
    readonly ca?: string | readonly string[]
    /** The name in the certificate, if it is not the host of the URL. */
    readonly servername?: string
    /** `false` accepts every certificate; a comment at the call gives the reason. */
    readonly verify?: boolean
  }
  /** The addresses that may be connected to; all but metadata addresses of cloud platforms by default. */
  readonly isAllowedAddress?: AddressTest
  /** `never` by default. */
  readonly allowHttp?: AllowHttp
  readonly maxBytes: number
  /** For the whole exchange: name resolution, connection, handshake, head and body. */
  readonly timeoutMs: number
  /** Required of a 200 response. */
  readonly contentType?: RegExp
  readonly signal?: AbortSignal
  /** For tests; `dns.lookup` by default. */
  readonly resolve?: ResolveName | undefined
}

/** A response with its whole body; the status is not a redirect, everything else is left to the caller. */
export interface FetchedDocument {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Names and values in turns, as received: `headers` joins or drops repeated ones. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
}

/** Why a document was not fetched. */
export type FetchErrorCode =
  | 'timeout'
  | 'too-large'
  | 'untrusted'
  | 'blocked-address'
  | 'redirected'
  | 'bad-content-type'
  | 'unreachable'

/** A document was not fetched. The message has the URL without its query, which may hold a secret. */
export class FetchError extends SallyportError {
  readonly code: FetchErrorCode
  /** The message without the URL. */
  readonly reason: string
  /** Of the response, if its head was received. */
  readonly status: number | undefined
  /** Of a redirect. */
  readonly location: string | undefined

  constructor(code: FetchErrorCode, url: URL, reason: string, facts: FetchErrorFacts = {}) {
    super(`cannot fetch ${urlWithoutQuery(url)}: ${reason}`, facts)
    this.code = code
    this.reason = reason
    this.status = facts.status
    this.location = facts.location
  }
}

interface FetchErrorFacts {
  readonly status?: number | undefined
  readonly location?: string | undefined
  readonly cause?: unknown
}

/** A URL as it may be logged: without user, password, query and fragment. */
export const urlWithoutQuery = ({ origin, pathname }: URL): string => `${origin}${pathname}`

/** What is wrong with the URL of a document, as in `the URL …`. */
export function urlProblem(text: string, allowHttp: AllowHttp = 'never'): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url) return 'is not a valid URL'
  if (url.username !== '' || url.password !== '') return 'contains a user or a password'
  if (url.protocol === 'https:') return undefined
  if (url.protocol !== 'http:' || allowHttp === 'never') return 'is not an https URL'
  const isAllowed = allowHttp === 'always' || isLoopbackHost(url)
  return isAllowed ? undefined : 'is not an https URL'
}

/** Whether the code of a TLS error means that the certificate of the server was not accepted. */
export const isCertificateError = (code: string): boolean =>
  /^(?:CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERROR_IN_C|ERR_TLS_CERT_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_MISMATCH$)/.test(
    code,
  )

/**
 * Fetches a document within limits of size and time. Redirects are not followed, bodies not decompressed. Addresses are
 * checked where names are resolved, and a connection is made to a checked address only (no DNS rebinding).
 * @throws FetchError; the reason of `options.signal` if that aborts.
 */
export async function fetchDocument(
  url: URL,
  options: FetchDocumentOptions,
): Promise<FetchedDocument> {
  const problem = urlProblem(url.href, options.allowHttp)
  if (problem !== undefined) throw new FetchError('blocked-address', url, `the URL ${problem}`)
  const host = hostOf(url)
  // Node.js resolves names only.
  if (isIP(host) !== 0) requireAllowed([host], url, options)
  const outer = options.signal ?? new AbortController().signal
  return withinTime(options.timeoutMs, outer, (signal) => exchange(url, options, signal))
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

const isLoopbackHost = (url: URL): boolean =>
  url.hostname === 'localhost' || isLoopback(hostOf(url))

async function exchange(
  url: URL,
  options: FetchDocumentOptions,
  signal: AbortSignal,
): Promise<FetchedDocument> {
  let response: IncomingMessage | undefined
  try {
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest
    const sent = request(url, requestOptions(url, options, signal))
    response = await responseTo(sent.end(options.body))
    checkHead(response, url, options)
    const { statusCode: status = 0, headers, rawHeaders } = response
    return { status, headers, rawHeaders, body: await readBody(response, url, options.maxBytes) }
  } catch (error) {
    options.signal?.throwIfAborted()
    if (error instanceof FetchError) throw error
    const status = response?.statusCode
    if (signal.aborted) {
      const reason = `no complete response within ${options.timeoutMs} ms`
      throw new FetchError('timeout', url, reason, { status, cause: error })
    }
    throw connectionError(error, url, status)
  } finally {
    response?.destroy()
  }
}

function requestOptions(
  url: URL,
  { method = 'GET', headers, tls = {}, ...options }: FetchDocumentOptions,
  signal: AbortSignal,
): RequestOptions {
  const { ca, servername, verify = true } = tls
  return {
    method,
    // A connection of its own, without the proxies and session caches of a shared agent.
    agent: false,
    signal,
    lookup: checkedLookup(url, options),
    maxHeaderSize: maxHeaderBytes,
    // Explicit, so that no environment variable weakens them.
    insecureHTTPParser: false,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: verify,
    // Node.js takes an empty text for none and would trust its own CAs.
    ...(ca !== undefined && { ca: (typeof ca === 'string' ? [ca] : [...ca]).filter(Boolean) }),
    ...(servername !== undefined && { servername }),
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'sallyport',
      ...headers,
    },
  }
}

const maxHeaderBytes = 16 * 1024

type AddressRules = Pick<FetchDocumentOptions, 'isAllowedAddress' | 'allowHttp' | 'resolve'>

/** Resolves a name once and returns checked addresses, which are the ones that are connected to. */
function checkedLookup(url: URL, rules: AddressRules): LookupFunction {
  const resolve: ResolveName = rules.resolve ?? dnsLookup
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, found) => {
      try {
        if (error) throw error
        const [first] = found
        if (!first) throw new FetchError('unreachable', url, `${name} has no address`)
        // One forbidden address is enough: no honest name mixes them.
        requireAllowed(
          found.map(({ address }) => address),
          url,
          rules,
        )
        if (options.all) done(null, found)
        else done(null, first.address, first.family)
      } catch (failure) {
        done(failure instanceof Error ? failure : new Error('lookup failed'), '')
      }
    })
  }
}

function requireAllowed(addresses: readonly string[], url: URL, rules: AddressRules): void {
  const { isAllowedAddress = isNoPlatformAddress, allowHttp } = rules
  const isLoopbackOnly = url.protocol === 'http:' && allowHttp !== 'always'
  const isAllowed = isLoopbackOnly ? isLoopback : isAllowedAddress
  const blocked = addresses.find((address) => !isAllowed(address))
  if (blocked === undefined) return
  throw new FetchError('blocked-address', url, `the address ${blocked} is not allowed`)
}

const isNoPlatformAddress: AddressTest = (address) =>
  isIP(address) !== 0 && !isPlatformAddress(address)

function checkHead(response: IncomingMessage, url: URL, options: FetchDocumentOptions): void {
  const { statusCode: status = 0, headers } = response
  const { location, 'content-type': type = '', 'content-encoding': encoding = '' } = headers
  const fail = (code: FetchErrorCode, reason: string): FetchError =>
    new FetchError(code, url, reason, { status, location })
  if (status >= 300 && status < 400)
    throw fail('redirected', `redirect (status ${status}) is not followed`)
  if (Number(headers['content-length'] ?? 0) > options.maxBytes)
    throw tooLarge(url, options.maxBytes, status)
  if (status !== 200) return
  if (!/^(?:identity)?$/i.test(encoding))
    throw fail(
      'bad-content-type',
      `unexpected content encoding ${JSON.stringify(encoding.slice(0, 64))}`,
    )
  if (options.contentType && !options.contentType.test(type))
    throw fail('bad-content-type', `unexpected content type ${JSON.stringify(type.slice(0, 64))}`)
}

async function readBody(response: IncomingMessage, url: URL, maxBytes: number): Promise<Buffer> {
  const chunks = new HeldChunks()
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    if (chunks.bytes > maxBytes) throw tooLarge(url, maxBytes, response.statusCode)
  }
  return Buffer.concat(chunks.take())
}

const tooLarge = (url: URL, maxBytes: number, status: number | undefined): FetchError =>
  new FetchError('too-large', url, `response is too large (more than ${maxBytes} bytes)`, {
    status,
  })

function connectionError(cause: unknown, url: URL, status: number | undefined): FetchError {
  const code = systemErrorCode(cause) ?? ''
  const words = cause instanceof Error && cause.message !== '' ? cause.message : code
  const reason = words.includes(code) ? words : `${words} (${code})`
  return isCertificateError(code)
    ? new FetchError('untrusted', url, `certificate is not trusted: ${reason}`, { cause })
    : new FetchError('unreachable', url, reason || 'unknown error', { status, cause })
}

/** Limits of what a server may decide about caching. */
export interface CacheLimits {
  readonly minMs: number
  readonly maxMs: number
  /** Without a usable `max-age`. */
  readonly defaultMs: number
}

/** For how long a document may be cached: `max-age` minus its `Age` (RFC 9111 §4.2), within limits. */
export function cacheLifetimeMs(
  { cacheControl = '', ageSeconds = 0 }: { cacheControl?: string | undefined; ageSeconds?: number },
  { minMs, maxMs, defaultMs }: CacheLimits,
): number {
  const directives = new Map(cacheControl.toLowerCase().split(',').map(parseDirective))
  if (directives.has('no-store') || directives.has('no-cache')) return minMs
  const maxAge = directives.get('max-age') ?? ''
  if (!/^\d{1,10}$/.test(maxAge)) return defaultMs
  const leftMs = (Number(maxAge) - Math.max(0, ageSeconds)) * 1000
  return Math.min(Math.max(leftMs, minMs), maxMs)
}

function parseDirective(text: string): [name: string, value: string] {
  const [name = '', value = ''] = text.trim().split('=')
  return [name, value.replace(/^"(.*)"$/, '$1')]
}
