import type { TokenAuthenticator } from '../../authn/index.ts'
import { type Authentication, type Clock, type Logger, unauthorized } from '../../core/index.ts'
import { TokenRefused, VerifiedTokenCache } from '../../jose/index.ts'
import {
  createTokenVerifier,
  IssuerUnavailable,
  type SigningAlgorithm,
  TokenRejected,
  type VerifiedToken,
} from '../relying-party/index.ts'
import { unverifiedIssuer } from '../tokens/unverified-issuer.ts'
import { type ClaimRules, userOfClaims } from './user-of-claims.ts'

/** Which provider is believed, and what its claims mean. */
export interface OidcUsersOptions extends ClaimRules {
  readonly clientId: string
  readonly algorithms: readonly SigningAlgorithm[]
  readonly caPem?: string | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** Knows the users of an outside OIDC provider by their id tokens. Nothing is asked of it before the first token comes. */
export function oidcUsers(options: OidcUsersOptions): TokenAuthenticator {
  const { issuer, clientId, algorithms, caPem, clock, log } = options
  const verifier = createTokenVerifier({
    issuer,
    audience: clientId,
    algorithms,
    caPem,
    clock,
    log,
    // The operator has named the provider, and many are in the same network.
    allowPrivateAddresses: true,
  })
  // The same object for each use, so that what is kept per identity is found again.
  const known = new VerifiedTokenCache<Authentication>({ clock })
  return {
    name: 'oidc',
    authenticateToken: async (token) => {
      if (unverifiedIssuer(token) !== issuer) return undefined
      try {
        return await known.get(token, [], async () => {
          const verified = await verifier.verify(token)
          return { value: authenticationOf(verified, options), until: verified.expiresAt }
        })
      } catch (error) {
        if (
          error instanceof TokenRejected ||
          error instanceof TokenRefused ||
          error instanceof IssuerUnavailable
        )
          throw unauthorized(`oidc: ${error.message}`)
        throw error
      }
    },
  }
}

function authenticationOf(
  { claims, expiresAt, id }: VerifiedToken,
  options: OidcUsersOptions,
): Authentication {
  // A person's token gets no grace: kube-apiserver gives none.
  if (options.clock.now() > expiresAt) throw new TokenRefused('expired', 'the token has expired')
  return {
    method: 'oidc',
    user: userOfClaims(claims, options),
    expiresAt,
    ...(id !== undefined && { credential: { type: 'token' as const, id } }),
  }
}
