import type { StructuredToken } from '../../authn/index.ts'
import type { UserInfo } from '../../core/index.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import type { TokenUsage } from '../tokens/stored-token.ts'
import { bootstrapUser } from './bootstrap-tokens.ts'
import type { TokenBook } from './token-book.ts'

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
  book: Pick<TokenBook, 'find'>,
  fileToken: (id: string) => StructuredToken | undefined,
): (id: string) => TokenKey | undefined {
  return (id) => {
    const stored = book.find(id)
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
