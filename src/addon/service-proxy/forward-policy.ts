import type { Transform } from 'node:stream'
import { ApiError, badRequest, systemErrorCode } from '../../core/index.ts'
import { type ForwardPolicy, makePrivate } from '../../http/forward/index.ts'
import {
  endToEndHeaders,
  headerPairs,
  homeCookie,
  isOriginHeader,
  type Meter,
  metered,
  rawHeaderValues,
  sandboxPolicy,
  withoutHeaders,
} from '../../http/index.ts'
import { RequestInvalid, type ResponseHead } from '../../http/upstream/index.ts'
import { tunnelHeader } from '../token/index.ts'
import type { PageWindow } from './limits.ts'
import { costlyCoding, htmlStreams, isReadableCoding } from './rewrite/html-stream.ts'
import { rewriteUrl, type UrlPlaces } from './rewrite/rewrite-url.ts'

/** What has to be known to make a response of an add-on fit for its client. */
export interface ResponseContext extends UrlPlaces {
  /** Whether the response depends on the user. */
  readonly hasIdentity: boolean
  readonly isOwnCookie: (pair: string) => boolean
  /** Whether the content may not run on the API's origin. */
  readonly isSandboxed: boolean
  /** Whether a browser would show the response as a page. */
  readonly isNavigation: boolean
  /** Headers of ours, flat. */
  readonly added: readonly string[]
  /** Counts what is rewritten. */
  readonly toClient: Meter
  /** What unpacking a page may take of our memory. */
  readonly window: PageWindow
}

/** Sent by this server itself, whatever the add-on sends. */
const ownHeaders = new Set(['audit-id', 'x-content-type-options', tunnelHeader.toLowerCase()])

/** Policies under which a page would not say to us, either, which add-on it belongs to. */
const silent = /(?:^|,)\s*(?:no-referrer|origin|strict-origin)\s*$/i

/** How responses of add-ons are forwarded on the API's origin. */
export class AddonPolicy implements ForwardPolicy {
  readonly #context: ResponseContext

  constructor(context: ResponseContext) {
    this.#context = context
  }

  responseHeaders({ rawHeaders }: ResponseHead): string[] {
    const { hasIdentity, isSandboxed, isNavigation, added } = this.#context
    const kept: string[] = []
    for (const [spelt, sent] of headerPairs(endToEndHeaders(rawHeaders))) {
      const name = spelt.toLowerCase()
      const value = valueFor(name, sent, this.#context)
      if (value !== undefined) kept.push(name, value)
    }
    let headers = makePrivate(kept)
    // Its parts have headers of their own, which browsers have taken for those of the page before.
    if (isSandboxed && isNavigation && isMultipart(headers)) {
      headers = withoutHeaders(headers, (name) => name === 'content-type')
      headers.push('content-type', 'application/octet-stream')
    }
    // One policy more, and the last: browsers enforce all of them, and a proxy on another origin removes exactly this one.
    if (isSandboxed) headers.push('content-security-policy', sandboxPolicy)
    if (hasIdentity) headers.push('vary', 'Authorization, Cookie')
    headers.push(...added)
    return headers
  }

  transform(head: ResponseHead): (() => readonly Transform[]) | undefined {
    const coding = pageCodingOf(head)
    takeWindow(this.#context.window, coding)
    return coding === undefined ? undefined : () => rewriting(coding, this.#context)
  }

  failure(error: unknown): Error {
    if (error instanceof RequestInvalid) return badRequest('the request cannot be forwarded')
    return unreachable(error)
  }
}

function valueFor(name: string, value: string, context: ResponseContext): string | undefined {
  if (isOriginHeader(name) || ownHeaders.has(name)) return undefined
  if (name === 'location' || name === 'content-location') return rewriteUrl(value, context)
  if (name === 'referrer-policy') return silent.test(value) ? 'same-origin' : value
  if (name !== 'set-cookie') return value
  if (context.isOwnCookie(value)) return undefined
  return homeCookie(value, { prefix: context.prefix, mount: context.prefix })
}

const isMultipart = (headers: readonly string[]): boolean =>
  rawHeaderValues(headers, 'content-type').some((type) => /^\s*multipart\//i.test(type))

/** A part of a page cannot be read, and neither can a page in a coding or an alphabet that we do not know. */
function pageCodingOf({ rawHeaders, status }: ResponseHead): string | undefined {
  const type = rawHeaderValues(rawHeaders, 'content-type')[0]?.toLowerCase() ?? ''
  if (!/^text\/html\s*(?:;|$)/.test(type) || status === 206) return undefined
  if (/charset\s*=\s*"?utf-?(?:16|32)/.test(type)) return undefined
  const coding = rawHeaderValues(rawHeaders, 'content-encoding').join(', ').trim().toLowerCase()
  return isReadableCoding(coding) ? coding : undefined
}

/** A window that was kept for a page is given back if there is none; a page without a window came unrequested. */
function takeWindow(window: PageWindow, coding: string | undefined): void {
  if (coding !== costlyCoding) window.leave()
  else if (!window.take())
    throw new ApiError(
      'TooManyRequests',
      `too many pages under ${costlyCoding} are open here, please try again later`,
      { details: { retryAfterSeconds: 1 } },
    )
}

/**
 * A packed page counts as what it is and as what it unpacks to: a few bytes may stand for a page without end, and many
 * for nothing at all, and each of them costs us.
 */
function rewriting(coding: string, context: ResponseContext): readonly Transform[] {
  const [first, ...others] = htmlStreams(coding, (url) => rewriteUrl(url, context))
  const counting = (): Transform => metered(context.toClient)
  return [...(others.length > 0 ? [counting()] : []), first, counting(), ...others]
}

/** What is thrown when a backend cannot be reached or does not respond with HTTP. */
function unreachable(error: unknown): ApiError {
  const why = error instanceof Error ? (tlsFailure(error) ?? error.message) : 'unknown error'
  return new ApiError('ServiceUnavailable', `error trying to reach service: ${why}`, {
    cause: error,
  })
}

/** What OpenSSL found, without its addresses and source files. */
function tlsFailure(error: Error): string | undefined {
  const reason: unknown = 'reason' in error ? error.reason : undefined
  const isTls = systemErrorCode(error)?.startsWith('ERR_SSL_') === true
  return isTls && typeof reason === 'string' ? `no TLS (${reason}); is it https?` : undefined
}
