import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { ApiError } from '../../../core/index.ts'
import { announcedTrailers, mayHaveTrailers, rawHeaderValues } from '../../../http/index.ts'
import { costlyCoding, isReadableCoding } from '../rewrite/html-stream.ts'
import { clientHeaders } from './answer-headers.ts'
import { askByClient } from './ask-by-client.ts'
import { askPlainly } from './ask-plainly.ts'
import type { BackendAnswer } from './backend-answer.ts'
import { type Forwarding, unreachable } from './exchange.ts'
import { type Passing, sendStream, sendWhole } from './send-body.ts'

/** Sends a request to its backend and the answer back, each as it arrives; rejects while nothing has been answered. */
export async function forwardRequest(
  forwarding: Forwarding,
  response: ServerResponse,
): Promise<void> {
  const answer = await (askPlainly(forwarding) ?? askByClient(forwarding))
  await sendAnswer(forwarding, answer, response)
}

/** Passes an answer on whose head has arrived. */
export async function sendAnswer(
  forwarding: Forwarding,
  answer: BackendAnswer,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = answer
  const mayHave = mayHaveTrailers(forwarding.request, answer)
  const trailers = mayHave ? announcedTrailers(answer.rawHeaders) : []
  const pageCoding = pageCodingOf(answer)
  takeWindow(forwarding, answer, pageCoding)
  const passing = { forwarding, answer, response, pageCoding, trailers }
  const hasBody = forwarding.request.method !== 'HEAD' && status !== 204 && status !== 304
  writeHead(passing, headersOf(passing, hasBody))
  if (!hasBody) {
    if (body instanceof Readable) body.resume()
    response.end()
  } else if (body instanceof Readable) await sendStream(passing, body)
  else if (passing.pageCoding === undefined) await sendWhole(passing, body)
  else await sendStream(passing, Readable.from(body))
}

/** A place that was kept for a page is given back if there is none; a page without a place came unasked for, or too many did. */
function takeWindow(
  { window }: Forwarding,
  { body }: BackendAnswer,
  pageCoding: string | undefined,
): void {
  if (pageCoding !== costlyCoding) window?.leave()
  else if (window?.take() === false) {
    if (body instanceof Readable) body.destroy()
    throw new ApiError(
      'TooManyRequests',
      `too many pages under ${costlyCoding} are open here, please try again later`,
      { details: { retryAfterSeconds: 1 } },
    )
  }
}

function headersOf(
  { forwarding, answer, pageCoding, trailers }: Passing,
  hasBody: boolean,
): Map<string, string[]> {
  const { places, added } = forwarding
  const { body, rawHeaders } = answer
  const headers = clientHeaders(rawHeaders, places)
  for (const [name, values] of added) headers.set(name, [...(headers.get(name) ?? []), ...values])
  // Its parts have headers of their own, which browsers have taken for those of the page before.
  if (places.isSandboxed && isNavigation(forwarding.request) && isMultipart(headers))
    headers.set('content-type', ['application/octet-stream'])
  if (trailers.length > 0) headers.set('trailer', [trailers.join(', ')])
  // The length of what a page becomes is not known.
  if (pageCoding !== undefined) headers.delete('content-length')
  // What came in chunks may be here as a whole.
  else if (hasBody && trailers.length === 0 && !(body instanceof Readable))
    headers.set('content-length', [String(body.length)])
  return headers
}

const isNavigation = ({ headers }: IncomingMessage): boolean =>
  headers['sec-fetch-mode'] === 'navigate'

const isMultipart = (headers: ReadonlyMap<string, readonly string[]>): boolean =>
  headers.get('content-type')?.some((type) => /^\s*multipart\//i.test(type)) ?? false

/** Writes the head, or takes back what was written of it: the refusal that follows is ours and not the backend's. */
function writeHead(
  { answer: { status, body }, response }: Passing,
  headers: ReadonlyMap<string, string[]>,
): void {
  try {
    for (const [name, values] of headers) {
      const [only = ''] = values
      response.setHeader(name, values.length > 1 ? values : only)
    }
    response.writeHead(status)
  } catch (cause) {
    if (body instanceof Readable) body.destroy()
    for (const name of headers.keys()) response.removeHeader(name)
    throw unreachable(cause)
  }
}

/** A part of a page cannot be read, and neither can a page in a coding or an alphabet that we do not know. */
function pageCodingOf({ rawHeaders, status }: BackendAnswer): string | undefined {
  const type = rawHeaderValues(rawHeaders, 'content-type')[0]?.toLowerCase() ?? ''
  if (!/^text\/html\s*(?:;|$)/.test(type) || status === 206) return undefined
  if (/charset\s*=\s*"?utf-?(?:16|32)/.test(type)) return undefined
  const coding = rawHeaderValues(rawHeaders, 'content-encoding').join(', ').trim().toLowerCase()
  return isReadableCoding(coding) ? coding : undefined
}
