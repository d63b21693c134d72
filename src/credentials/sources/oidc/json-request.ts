import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { isRecord, responseTo, systemErrorCode, withinTime } from '../../../core/index.ts'
import { CredentialError } from '../../errors.ts'

/** A request whose answer is a JSON object. */
export interface JsonRequest {
  readonly url: string
  /** Sent as a form if given. */
  readonly form?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** PEM; those of Node.js if absent. */
  readonly ca?: string
  readonly signal: AbortSignal
}

/** An answer; the body is empty if it is no JSON object. */
export interface JsonAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

const timeoutMs = 30_000
const maxBytes = 1024 * 1024

/** Sends a request to a provider of identities; redirects are not followed, since they could carry secrets away. */
export function requestJson(request: JsonRequest): Promise<JsonAnswer> {
  return withinTime(timeoutMs, request.signal, (signal) => ask(request, signal))
}

async function ask(request: JsonRequest, signal: AbortSignal): Promise<JsonAnswer> {
  try {
    const response = await send(request, signal)
    return { status: response.statusCode ?? 0, body: parse(await readLimited(response)) }
  } catch (cause) {
    request.signal.throwIfAborted()
    const why = signal.aborted ? 'no answer in time' : (systemErrorCode(cause) ?? 'no valid answer')
    const { host } = new URL(request.url)
    throw new CredentialError('PROVIDER', `cannot ask the identity provider ${host}: ${why}`, {
      hint: 'check idp-issuer-url, idp-certificate-authority and the network',
      cause,
    })
  }
}

function send(
  { url, form, headers, ca }: JsonRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const target = new URL(url)
  const body = form && new URLSearchParams(form).toString()
  const options = {
    method: form ? 'POST' : 'GET',
    headers: {
      accept: 'application/json',
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    signal,
    agent: false as const,
    // Explicit, so that no environment variable turns it off: a refresh token is sent.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
  }
  const request = target.protocol === 'http:' ? httpRequest : httpsRequest
  return responseTo(request(target, options).end(body))
}

async function readLimited(response: IncomingMessage): Promise<string> {
  let size = 0
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > maxBytes) response.destroy(new Error('the answer is too large'))
  })
  return text(response)
}

function parse(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body)
    return isRecord(value) ? value : {}
  } catch {
    return {} // the parser's words would quote the answer, in which there may be tokens
  }
}
