import { bearerOf, type RequestWithHeaders } from './bearer-credential.ts'
import { IssuerUnavailable, TokenRejected } from './relying-party-errors.ts'
import type { TokenVerifier, VerifiedServiceAccount, VerifiedToken } from './token-verifier.ts'

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
export async function decide<Verified extends VerifiedToken>(
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
