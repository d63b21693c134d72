import type { IncomingMessage, ServerResponse } from 'node:http'
import { IssuerUnavailable, TokenRejected } from './errors.ts'
import type { TokenVerifier, VerifiedServiceAccount, VerifiedToken } from './token-verifier.ts'

/** The required part of a request; requests of node:http, node:http2, Express and Fastify's `raw` have it. */
export interface RequestWithHeaders {
  readonly rawHeaders: readonly string[]
}

/** The bearer token of a request; throws TokenRejected if there is not exactly one. */
function bearerOf({ rawHeaders }: RequestWithHeaders): string {
  // Of two headers Node.js uses the first, and other parsers may use the second.
  const values = rawHeaders.filter(
    (_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'authorization',
  )
  const [value, ...others] = values
  if (value === undefined) throw new TokenRejected('missing', 'the request has no bearer token')
  const token = /^bearer ([\x21-\x7e]+)$/i.exec(value.trim())?.[1]
  if (others.length > 0 || token === undefined)
    throw new TokenRejected('malformed', 'the Authorization header is not a single bearer token')
  return token
}

/** Authorization of verified requests. */
export interface GuardOptions<Verified extends VerifiedToken = VerifiedServiceAccount> {
  /** Whether a verified request is allowed; all are by default. Others get 403. */
  readonly allow?: (verified: Verified) => boolean | Promise<boolean>
  /** Called with the reason of each rejection, which is not in the response. */
  readonly onRefused?: (error: TokenRejected | IssuerUnavailable | NotAllowed) => void
}

/** A verified request was not allowed. Respond with 403. */
export interface NotAllowed {
  readonly code: 'not-allowed'
  readonly message: string
}

/** A response that rejects a request. */
export interface Refusal {
  readonly status: 401 | 403 | 503
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The decision about a request. */
export type Decision<Verified> =
  | { readonly verified: Verified; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly verified?: undefined }

/** Verifies the bearer token of a request, for requests that bypass middleware, such as upgrades; throws as `verify` does. */
export async function verifyRequest<Verified extends VerifiedToken>(
  request: RequestWithHeaders,
  verifier: TokenVerifier<Verified>,
): Promise<Verified> {
  return verifier.verify(bearerOf(request))
}

/** Verifies the bearer token of a request and decides. */
async function decide<Verified extends VerifiedToken>(
  request: RequestWithHeaders,
  verifier: TokenVerifier<Verified>,
  { allow, onRefused }: GuardOptions<Verified>,
): Promise<Decision<Verified>> {
  try {
    const verified = await verifyRequest(request, verifier)
    // Only `true` allows: a promise that was not awaited is truthy.
    if (!allow || (await allow(verified)) === true) return { verified }
    onRefused?.({ code: 'not-allowed', message: `${verified.subject} is not allowed` })
    return { refusal: refusals.forbidden }
  } catch (error) {
    if (error instanceof TokenRejected) {
      onRefused?.(error)
      return { refusal: error.code === 'missing' ? refusals.missing : refusals.rejected }
    }
    if (!(error instanceof IssuerUnavailable)) throw error
    onRefused?.(error)
    return { refusal: refusals.unavailable }
  }
}

/** Errors of RFC 6750; equal for every reason, so that attackers learn nothing. */
const refusals = {
  missing: refusal(401, 'unauthorized', { 'www-authenticate': 'Bearer' }),
  rejected: refusal(401, 'invalid_token', { 'www-authenticate': 'Bearer error="invalid_token"' }),
  forbidden: refusal(403, 'insufficient_scope', {
    'www-authenticate': 'Bearer error="insufficient_scope"',
  }),
  unavailable: refusal(503, 'temporarily_unavailable', { 'retry-after': '5' }),
} as const

function refusal(
  status: Refusal['status'],
  error: string,
  headers: Readonly<Record<string, string>>,
): Refusal {
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify({ error }),
  }
}

/** A verified request. */
export interface VerifiedRequest<Verified extends VerifiedToken = VerifiedServiceAccount> {
  verified: Verified
}

/** For node:http: calls the listener only for requests with a valid token, and passes the verified token. */
export function guardListener<Verified extends VerifiedToken>(
  verifier: TokenVerifier<Verified>,
  listener: (
    request: IncomingMessage,
    response: ServerResponse,
    verified: Verified,
  ) => void | Promise<void>,
  options: GuardOptions<Verified> = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { refusal, verified } = await decide(request, verifier, options)
    if (refusal) {
      response.writeHead(refusal.status, refusal.headers).end(refusal.body)
      return
    }
    await listener(request, response, verified)
  }
  return (request, response) => {
    handle(request, response).catch((error: Error) => response.destroy(error))
  }
}

/** The part of Express' response that is used. */
interface ExpressResponse {
  writeHead(
    status: number,
    headers: Readonly<Record<string, string>>,
  ): { end(body: string): unknown }
}

/** For Express and Connect: middleware that sets `request.verified`, or rejects the request. */
export function expressGuard<Verified extends VerifiedToken>(
  verifier: TokenVerifier<Verified>,
  options: GuardOptions<Verified> = {},
) {
  return async (
    request: RequestWithHeaders,
    response: ExpressResponse,
    next: (error?: unknown) => void,
  ): Promise<void> => {
    try {
      const { refusal, verified } = await decide(request, verifier, options)
      if (refusal) {
        response.writeHead(refusal.status, refusal.headers).end(refusal.body)
        return
      }
      Object.assign(request, { verified })
    } catch (error) {
      next(error)
      return
    }
    next()
  }
}

/** The parts of Fastify's request and reply that are used. */
interface FastifyRequest {
  readonly raw: RequestWithHeaders
}
interface FastifyReply {
  code(status: number): FastifyReply
  headers(values: Readonly<Record<string, string>>): FastifyReply
  send(body: string): unknown
}

/** For Fastify: an `onRequest` hook that sets `request.verified`, or rejects the request. */
export function fastifyGuard<Verified extends VerifiedToken>(
  verifier: TokenVerifier<Verified>,
  options: GuardOptions<Verified> = {},
) {
  const respond = (reply: FastifyReply, { status, headers, body }: Refusal): unknown =>
    reply.code(status).headers(headers).send(body)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { refusal, verified } = await decide(request.raw, verifier, options)
    if (refusal) return respond(reply, refusal)
    Object.assign(request, { verified })
    return undefined
  }
}
