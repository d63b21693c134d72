import type { StructuredToken, TokenAuthenticator } from '../../authn/index.ts'
import { type Logger, Secret, type UserInfo } from '../../core/index.ts'
import {
  type BootstrapToken,
  looksLikeToken,
  parseBootstrapToken,
} from '../tokens/bootstrap-token.ts'
import { isSameSecret, type TokenUsage } from '../tokens/stored-token.ts'
import type { FailureLimit } from './failure-limit.ts'
import type { TokenCache } from './token-cache.ts'

const noSecret = new Secret('x'.repeat(16))

export const bootstrapUserPrefix = 'system:bootstrap:'

/** The user that stands behind a token. */
const bootstrapUser = (id: string): string => `${bootstrapUserPrefix}${id}`

/** Knows bootstrap tokens that are shown as they are: their second duty, after the server is trusted. */
export function bootstrapTokens(
  cache: Pick<TokenCache, 'find'>,
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
      const stored = cache.find(shown.id)
      // Compared in any case and before any limit: time does not show whether there is such a
      // token, and one that verifies is accepted whatever other clients did.
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

/** A token that requests can be signed with, and who signs by it. */
export interface TokenKey {
  readonly token: BootstrapToken
  readonly usages: ReadonlySet<TokenUsage>
  readonly user: UserInfo
  readonly expiresAt?: number
}

const bothUsages: ReadonlySet<TokenUsage> = new Set(['signing', 'authentication'])

/** Finds tokens by their ids: those of the cluster first, then those of the token file. */
export function tokenKeys(
  cache: Pick<TokenCache, 'find'>,
  fileToken: (id: string) => StructuredToken | undefined,
): (id: string) => TokenKey | undefined {
  return (id) => {
    const stored = cache.find(id)
    if (stored) {
      const { token, usages, expiresAt } = stored
      // Not the groups of the token: those are for requests that show it.
      const user = { username: bootstrapUser(id), groups: ['system:bootstrap-discovery'] }
      return { token, usages, user, ...(expiresAt !== undefined && { expiresAt }) }
    }
    const row = fileToken(id)
    if (!row) return undefined
    const token = { id, secret: row.secret }
    return { token, usages: bothUsages, user: row.authentication.user }
  }
}
