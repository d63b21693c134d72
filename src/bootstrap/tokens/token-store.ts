import {
  type ClusterView,
  CommandFailed,
  hasReason,
  isRecord,
  type KubeObject,
  wellKnownKinds,
} from '../../core/index.ts'
import { isTokenId } from './bootstrap-token.ts'
import {
  isoSeconds,
  isTokenSecret,
  readTokenSecret,
  recentUsesField,
  type StoredToken,
  secretNameOf,
  type TokenProblem,
  tokenNamespace,
  tokenSecret,
  tokenSecretType,
  usesField,
} from './stored-token.ts'

/** A token's Secret: the token, or why it does not count. */
export interface TokenEntry {
  readonly id: string
  readonly stored?: StoredToken
  readonly problems: readonly TokenProblem[]
}

const keyOf = (id: string) => ({ namespace: tokenNamespace, name: secretNameOf(id) })

/** Makes a token in the cluster. */
export async function createToken(
  view: ClusterView,
  stored: StoredToken,
  signal: AbortSignal,
): Promise<void> {
  try {
    await view.write('create', tokenSecret(stored), {}, signal)
  } catch (error) {
    if (!hasReason(error, 'AlreadyExists')) throw error
    const { id } = stored.token
    throw new CommandFailed('TOKEN_EXISTS', `there is a token ${id} already`, {
      hint: `delete it first with \`sallyport token delete ${id}\`, or choose another id`,
      cause: error,
    })
  }
}

/** Every token of the cluster, also those that do not count. */
export async function listTokens(view: ClusterView, signal: AbortSignal): Promise<TokenEntry[]> {
  const query = { namespace: tokenNamespace, fieldSelector: `type=${tokenSecretType}` }
  const { items } = await view.list(wellKnownKinds.secret, query, signal)
  return items.filter(isTokenSecret).map((secret) => ({
    id: secret.metadata.name.replace(/^bootstrap-token-/, ''),
    ...readTokenSecret(secret),
  }))
}

/** The token with this id; fails if there is none. */
export async function getToken(
  view: ClusterView,
  id: string,
  signal: AbortSignal,
): Promise<TokenEntry> {
  const secret = await view.get(wellKnownKinds.secret, keyOf(requireId(id)), signal)
  if (!secret) throw noToken(id)
  return { id, ...readTokenSecret(secret) }
}

/** Deletes the token with this id; fails if there is none. */
export async function deleteToken(
  view: ClusterView,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const metadata = keyOf(requireId(id))
  try {
    await view.write('delete', { apiVersion: 'v1', kind: 'Secret', metadata }, {}, signal)
  } catch (error) {
    throw hasReason(error, 'NotFound') ? noToken(id) : error
  }
}

function requireId(id: string): string {
  if (isTokenId(id)) return id
  throw new CommandFailed('TOKEN_ID_INVALID', 'this is not the id of a token', {
    hint: 'an id is the six letters before the dot; `sallyport token list` shows them',
  })
}

const noToken = (id: string): CommandFailed =>
  new CommandFailed('NO_TOKEN', `there is no token ${id}`, {
    hint: 'it may have expired; `sallyport token list` shows those there are',
  })

/** Requests that were counted longer ago than this many others have long been answered. */
const remembered = 64
/** The last node must still fetch its certificate with the token. */
const lastFetchMs = 5 * 60_000

/**
 * The Secret of a token with one use more, which dies soon after its last; undefined if there is
 * nothing to count, since the token has no limit or the request is counted already.
 */
export function withUse(
  secret: KubeObject,
  { requestUid, nowMs }: { readonly requestUid: string; readonly nowMs: number },
): KubeObject | undefined {
  const { stored } = readTokenSecret(secret)
  const { maxUses, uses = 0, recentUses = [], expiresAt } = stored ?? {}
  if (maxUses === undefined || recentUses.includes(requestUid)) return undefined
  const isLast = uses + 1 >= maxUses
  const endMs = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, nowMs + lastFetchMs)
  const counted = {
    [usesField]: String(uses + 1),
    [recentUsesField]: [...recentUses, requestUid].slice(-remembered).join(','),
    ...(isLast && { expiration: isoSeconds(endMs) }),
  }
  const data = isRecord(secret['data']) ? secret['data'] : {}
  const encoded = Object.entries(counted).map(
    ([field, text]) => [field, Buffer.from(text).toString('base64')] as const,
  )
  return { ...secret, data: { ...data, ...Object.fromEntries(encoded) } }
}
