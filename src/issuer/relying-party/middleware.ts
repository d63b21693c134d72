import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestWithHeaders } from './bearer-credential.ts'
import { decide, type GuardOptions, type Refusal } from './guard-request.ts'
import type { TokenVerifier, VerifiedServiceAccount, VerifiedToken } from './token-verifier.ts'

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
