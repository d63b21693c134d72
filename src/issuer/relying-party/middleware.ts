import type { IncomingMessage, ServerResponse } from 'node:http'
import { IssuerUnavailable, TokenRejected } from './errors.ts'
import type { TokenVerifier, VerifiedServiceAccount, VerifiedToken } from './token-verifier.ts'

/** The part of a request that matters here; requests of node:http, node:http2, Express and Fastify's `raw` have it. */
export interface RequestWithHeaders {
  readonly rawHeaders: readonly string[]
}

/** The one bearer token of a request; throws TokenRejected when there is none or more than one. */
function bearerOf({ rawHeaders }: RequestWithHeaders): string {
  // Of two headers Node.js shows the first and others may heed the second.
  const values = rawHeaders.filter(
    (_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'authorization',
  )
  const [value, ...others] = values
  if (value === undefined) throw new TokenRejected('missing', 'the request has no bearer token')
  const token = /^bearer ([\x21-\x7e]+)$/i.exec(value.trim())?.[1]
  if (others.length > 0 || token === undefined)
    throw new TokenRejected('malformed', 'the Authorization header is not one bearer token')
  return token
}

/** Who may pass, and who is told about those who may not. */
export interface GuardOptions<Verified extends VerifiedToken = VerifiedServiceAccount> {
  /** Which of those who have proven who they are may pass; everybody unless given. Others get 403. */
  readonly allow?: (verified: Verified) => boolean | Promise<boolean>
  /** Told why a request was refused; the answer itself does not say. */
  readonly onRefused?: (error: TokenRejected | IssuerUnavailable | NotAllowed) => void
}

/** Somebody has proven who they are and may not pass all the same. Answer 403. */
export interface NotAllowed {
  readonly code: 'not-allowed'
  readonly message: string
}

/** A refusal as it is sent. */
export interface Refusal {
  readonly status: 401 | 403 | 503
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a guard decided about a request. */
export type Decision<Verified> =
  | { readonly verified: Verified; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly verified?: undefined }

/** What the bearer token of a request proves, for requests that no middleware sees, such as upgrades; throws as `verify` does. */
export async function verifyRequest<Verified extends VerifiedToken>(
  request: RequestWithHeaders,
  verifier: TokenVerifier<Verified>,
): Promise<Verified> {
  return verifier.verify(bearerOf(request))
}

/** Decides about a request by its bearer token. */
async function decide<Verified extends VerifiedToken>(
  request: RequestWithHeaders,
  verifier: TokenVerifier<Verified>,
  { allow, onRefused }: GuardOptions<Verified>,
): Promise<Decision<Verified>> {
  try {
    const verified = await verifyRequest(request, verifier)
    // Nothing but `true` is a yes: a promise that was not waited for would be one for everybody.
    if (!allow || (await allow(verified)) === true) return { verified }
    onRefused?.({ code: 'not-allowed', message: `${verified.subject} may not pass` })
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

/** In the words of RFC 6750; the same for every reason, so that nobody learns by trying. */
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

/** A request that has passed, with who sent it. */
export interface VerifiedRequest<Verified extends VerifiedToken = VerifiedServiceAccount> {
  verified: Verified
}

/** For node:http: calls the listener only for requests with a good token, and gives it who sent them. */
export function guardListener<Verified extends VerifiedToken>(
  verifier: TokenVerifier<Verified>,
  listener: (
    request: IncomingMessage,
    response: ServerResponse,
    verified: Verified,
  ) => void | Promise<void>,
  options: GuardOptions<Verified> = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { refusal, verified } = await decide(request, verifier, options)
    if (refusal) {
      response.writeHead(refusal.status, refusal.headers).end(refusal.body)
      return
    }
    await listener(request, response, verified)
  }
  return (request, response) => {
    answer(request, response).catch((error: Error) => response.destroy(error))
  }
}

/** The part of Express' response that is used. */
interface ExpressResponse {
  writeHead(
    status: number,
    headers: Readonly<Record<string, string>>,
  ): { end(body: string): unknown }
}

/** For Express and Connect: middleware that sets `request.verified`, or answers by itself. */
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

/** For Fastify: an `onRequest` hook that sets `request.verified`, or answers by itself. */
export function fastifyGuard<Verified extends VerifiedToken>(
  verifier: TokenVerifier<Verified>,
  options: GuardOptions<Verified> = {},
) {
  const answer = (reply: FastifyReply, { status, headers, body }: Refusal): unknown =>
    reply.code(status).headers(headers).send(body)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { refusal, verified } = await decide(request.raw, verifier, options)
    if (refusal) return answer(reply, refusal)
    Object.assign(request, { verified })
    return undefined
  }
}
