import { isIP } from 'node:net'
import { type Clock, systemErrorCode } from '../../core/index.ts'
import {
  type FetchDocumentOptions,
  FetchError,
  fetchDocument,
  type ResolveName,
} from '../../http/fetch/index.ts'
import { maxProbeBytes, maxProbeMs } from '../limits.ts'

/** By which CAs the certificate of a server is trusted: those of Node.js, those that were given, or none. */
export type Trust = 'public' | 'given' | 'none'

/** The response to a GET without a credential. */
export interface Probe {
  readonly url: string
  /** Absent without a response. */
  readonly status?: number
  readonly contentType: string
  readonly cacheControl: string
  /** Empty if it could not be used. */
  readonly body: Buffer
  readonly ms: number
  readonly trust: Trust
  /** Why there is no response, or why the certificate is not trusted. */
  readonly problem?: string
}

/** How a document is fetched. */
export interface ProbeOptions {
  /** The only addresses to connect to: the host of the URL was resolved before, and is not resolved again. */
  readonly addresses: readonly string[]
  readonly caPem?: string | undefined
  readonly clock: Clock
}

/** Fetches a document with the public CAs, else with the given ones, else from any server: the doctor reports which. */
export async function probe(url: string, options: ProbeOptions): Promise<Probe> {
  const { caPem } = options
  const byPublicCas = await probeOnce(url, {}, options)
  if (!url.startsWith('https:'))
    return { ...byPublicCas, trust: 'none', problem: byPublicCas.problem ?? 'no TLS' }
  if (byPublicCas.untrusted === undefined) return byPublicCas
  if (caPem !== undefined) {
    const byGivenCas = await probeOnce(url, { ca: caPem }, options)
    if (byGivenCas.trust === 'public') return { ...byGivenCas, trust: 'given' }
  }
  // Unverified: nothing secret is sent, and what is received is only reported.
  const unverified = await probeOnce(url, { verify: false }, options)
  return { ...unverified, trust: 'none', problem: byPublicCas.untrusted }
}

async function probeOnce(
  url: string,
  tls: NonNullable<FetchDocumentOptions['tls']>,
  { addresses, clock }: ProbeOptions,
): Promise<Probe & { readonly untrusted?: string }> {
  const startedAt = clock.monotonic()
  try {
    const { status, headers, body } = await fetchDocument(new URL(url), {
      tls,
      resolve: resolveTo(addresses),
      allowHttp: 'always',
      timeoutMs: maxProbeMs,
      maxBytes: maxProbeBytes,
    })
    const { 'content-type': contentType = '', 'cache-control': cacheControl = '' } = headers
    const ms = clock.monotonic() - startedAt
    return { url, status, contentType, cacheControl, body, ms, trust: 'public' }
  } catch (error) {
    if (!(error instanceof FetchError)) throw error
    const ms = clock.monotonic() - startedAt
    const none = { url, contentType: '', cacheControl: '', body: Buffer.alloc(0), ms }
    return { ...none, ...problemOf(error) }
  }
}

/** Codes with which a response was received that a relying party would not use. */
const unusable: ReadonlySet<string> = new Set(['redirected', 'too-large', 'bad-content-type'])

function problemOf({
  code,
  status,
  reason,
  cause,
}: FetchError): Pick<Probe, 'status' | 'trust' | 'problem'> & { readonly untrusted?: string } {
  if (unusable.has(code) && status !== undefined) return { status, trust: 'public' }
  const problem = systemErrorCode(cause) ?? reason
  return { trust: 'none', problem, ...(code === 'untrusted' && { untrusted: problem }) }
}

/** Resolves every name to the given addresses. */
function resolveTo(addresses: readonly string[]): ResolveName {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (name, _options, done) => {
    if (found.length > 0) done(null, found)
    else done(Object.assign(new Error(`${name} has no address`), { code: 'ENOTFOUND' }), [])
  }
}
