import type { TokenAuthenticator } from '../../authn/index.ts'
import { type Logger, Secret } from '../../core/index.ts'
import { looksLikeToken, parseBootstrapToken } from '../tokens/bootstrap-token.ts'
import { isSameSecret } from '../tokens/stored-token.ts'
import type { FailureLimit } from './failure-limit.ts'
import type { TokenBook } from './token-book.ts'

const noSecret = new Secret('x'.repeat(16))

export const bootstrapUserPrefix = 'system:bootstrap:'

/** The user that stands behind a token. */
export const bootstrapUser = (id: string): string => `${bootstrapUserPrefix}${id}`

/** Knows bootstrap tokens that are shown as they are: their second duty, after the server is trusted. */
export function bootstrapTokens(
  book: Pick<TokenBook, 'find'>,
  failures: FailureLimit,
  log: Logger,
): TokenAuthenticator {
  return {
    name: 'bootstrap-token',
    authenticateToken: (text, _signal, _audiences, source) => {
      if (!looksLikeToken(text)) return undefined
      const shown = parseBootstrapToken(text)
      const attempt = { source, id: shown.id }
      const about = { tokenId: shown.id, source }
      failures.check(attempt)
      const stored = book.find(shown.id)
      // Compared in any case, so that time does not tell whether there is such a token.
      const isRight = isSameSecret(shown.secret, stored?.token.secret ?? noSecret)
      if (!stored || !isRight || !stored.usages.has('authentication')) {
        failures.failed(attempt)
        const why = stored ? (isRight ? 'not for requests' : 'wrong secret') : 'unknown or expired'
        log.trace({ ...about, why }, 'bootstrap token refused')
        return undefined
      }
      log.trace(about, 'bootstrap token accepted')
      return {
        method: 'bootstrap-token',
        user: {
          username: bootstrapUser(shown.id),
          groups: ['system:bootstrappers', ...stored.extraGroups],
        },
        credential: { type: 'token', id: shown.id },
        ...(stored.expiresAt !== undefined && { expiresAt: stored.expiresAt }),
      }
    },
  }
}
