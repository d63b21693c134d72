import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { responseTo, systemErrorCode } from '../../core/index.ts'
import { type AddressTest, isLoopback } from '../../http/index.ts'
import { IssuerUnavailable } from './errors.ts'

/** Finds the addresses of a name; `dns.lookup` unless a test has its own. */
export type ResolveName = (
  name: string,
  options: LookupOptions & { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Under which rules documents are fetched. */
export interface FetchRules {
  readonly isAllowedAddress: AddressTest
  /** Whether http may be spoken with this machine itself. */
  readonly allowsHttpOnLoopback: boolean
  /** Roots to trust instead of the public ones. */
  readonly caPem?: string | undefined
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly resolve?: ResolveName | undefined
  /** A credential for documents that are not public, and the only origin that gets to see it. */
  readonly credential?: DocumentCredential | undefined
}

/** A bearer token, and the origin (`https://host:port`) that it is for. */
export interface DocumentCredential {
  readonly origin: string
  readonly token: () => string | Promise<string>
}

/** A document as it was received. */
export interface FetchedDocument {
  readonly body: Buffer
  /** What `Cache-Control` says, and how old the answer is already. */
  readonly cacheControl?: string | undefined
  readonly ageSeconds?: number
}

/** What is wrong with an address for documents, as in `must be ...`. */
export function problemOfUrl(text: string, rules: Pick<FetchRules, 'allowsHttpOnLoopback'>) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url) return 'is no URL'
  if (url.username !== '' || url.password !== '') return 'has a user or a password in it'
  if (url.protocol === 'https:') return undefined
  if (url.protocol === 'http:' && rules.allowsHttpOnLoopback && isLoopbackHost(url))
    return undefined
  return 'is no https URL'
}

/** Fetches a JSON document: no redirects, no compression, only from allowed addresses, within size and time. */
export async function fetchDocument(url: URL, rules: FetchRules): Promise<FetchedDocument> {
  const problem = problemOfUrl(url.href, rules)
  if (problem !== undefined)
    throw new IssuerUnavailable('bad-document', `the address ${url.origin} ${problem}`)
  const host = hostOf(url)
  if (isIP(host) !== 0) requireAllowed([host], url, rules)
  const signal = AbortSignal.timeout(rules.timeoutMs)
  const response = await send(url, await optionsFor(url, rules, signal))
  try {
    requireGoodHead(response, url, rules)
    return {
      body: await readAll(response, url, rules.maxBytes),
      cacheControl: response.headers['cache-control'],
      ageSeconds: Number(response.headers.age ?? 0) || 0,
    }
  } catch (error) {
    throw signal.aborted ? tooSlow(url, error) : error
  } finally {
    response.destroy()
  }
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

const isLoopbackHost = (url: URL): boolean =>
  url.hostname === 'localhost' || isLoopback(hostOf(url))

async function optionsFor(
  url: URL,
  rules: FetchRules,
  signal: AbortSignal,
): Promise<RequestOptions> {
  const { credential } = rules
  const token = credential?.origin === url.origin ? (await credential.token()).trim() : undefined
  return {
    method: 'GET',
    agent: false,
    signal,
    lookup: guardedLookup(url, rules),
    maxHeaderSize: 16 * 1024,
    minVersion: 'TLSv1.2',
    // Said here, no environment can turn it off.
    rejectUnauthorized: true,
    ...(rules.caPem !== undefined && { ca: rules.caPem }),
    headers: {
      accept: 'application/json, application/jwk-set+json',
      'accept-encoding': 'identity',
      'user-agent': 'sallyport-relying-party',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
  }
}

/** Looks a name up once; what was checked is what is dialled. */
function guardedLookup(url: URL, rules: FetchRules): LookupFunction {
  const resolve: ResolveName = rules.resolve ?? dnsLookup
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, found) => {
      try {
        if (error) throw error
        const [first] = found
        if (!first) throw new IssuerUnavailable('unreachable', `${url.host} has no address`)
        // One address inside is enough to refuse: whoever mixes them has a reason.
        requireAllowed(
          found.map(({ address }) => address),
          url,
          rules,
        )
        if (options.all) done(null, found)
        else done(null, first.address, first.family)
      } catch (refusal) {
        done(refusal instanceof Error ? refusal : new Error('lookup failed'), '')
      }
    })
  }
}

function requireAllowed(addresses: readonly string[], url: URL, rules: FetchRules): void {
  const isAllowed = url.protocol === 'http:' ? isLoopback : rules.isAllowedAddress
  const blocked = addresses.find((address) => !isAllowed(address))
  if (blocked === undefined) return
  throw new IssuerUnavailable(
    'blocked-address',
    `${url.host} has the address ${blocked}, which is private: allow it if this is meant`,
  )
}

async function send(url: URL, options: RequestOptions): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest
  try {
    return await responseTo(request(url, options).end())
  } catch (error) {
    throw error instanceof Error ? failureOf(error, url) : error
  }
}

const untrusted = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/

function failureOf(error: Error, url: URL): IssuerUnavailable {
  if (error instanceof IssuerUnavailable) return error
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return tooSlow(url, error)
  const code = systemErrorCode(error) ?? 'unknown error'
  if (untrusted.test(code))
    return new IssuerUnavailable(
      'untrusted-certificate',
      `the certificate of ${url.host} is not trusted (${code})`,
      { cause: error },
    )
  return new IssuerUnavailable('unreachable', `${url.host} cannot be reached (${code})`, {
    cause: error,
  })
}

const tooSlow = (url: URL, cause: unknown): IssuerUnavailable =>
  new IssuerUnavailable('too-slow', `${url.host} did not answer in time`, { cause })

const jsonType = /^application\/(?:[\w.-]+\+)?json(?:\s*;|$)/i

function requireGoodHead(response: IncomingMessage, url: URL, { maxBytes }: FetchRules): void {
  const { statusCode = 0, headers } = response
  if (statusCode >= 300 && statusCode < 400)
    throw new IssuerUnavailable(
      'redirected',
      `${url.host} answered with a redirect (${statusCode}), which is not followed`,
    )
  if (statusCode !== 200)
    throw new IssuerUnavailable('bad-status', `${url.host} answered with ${statusCode}`)
  if (headers['content-encoding'] !== undefined)
    throw new IssuerUnavailable('bad-document', `${url.host} answered in an encoding of its own`)
  if (!jsonType.test(headers['content-type'] ?? ''))
    throw new IssuerUnavailable('bad-document', `${url.host} did not answer with JSON`)
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(url, maxBytes)
}

async function readAll(response: IncomingMessage, url: URL, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) throw tooLarge(url, maxBytes)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof Error ? failureOf(error, url) : error
  }
  return Buffer.concat(chunks)
}

const tooLarge = (url: URL, maxBytes: number): IssuerUnavailable =>
  new IssuerUnavailable('too-large', `${url.host} answered with more than ${maxBytes} bytes`)
