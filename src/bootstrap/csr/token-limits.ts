import { changeObject } from '../../client/index.ts'
import {
  type ClusterView,
  goQuote,
  type KubeObject,
  type UserInfo,
  wellKnownKinds,
} from '../../core/index.ts'
import { bootstrapUserPrefix } from '../server/authenticator.ts'
import { isTokenId } from '../tokens/bootstrap-token.ts'
import {
  isExpired,
  readTokenSecret,
  type StoredToken,
  secretNameOf,
  tokenNamespace,
} from '../tokens/stored-token.ts'
import { withUse } from '../tokens/token-store.ts'
import type { Verdict } from './signing-request.ts'

/** Why a token gives no certificate, in the words of a condition. */
export type Refusal = Pick<Verdict, 'reason' | 'message'>

/** A certificate that a token is to give: for which node, by which request, and when. */
export interface TokenUse {
  readonly nodeName: string
  /** The request's uid: asked twice, a request is one use. */
  readonly requestUid: string
  readonly nowMs: number
}

/** The id of the token that somebody has shown; undefined if it was another credential. */
export function tokenIdOf({ username }: UserInfo): string | undefined {
  if (!username.startsWith(bootstrapUserPrefix)) return undefined
  const id = username.slice(bootstrapUserPrefix.length)
  return isTokenId(id) ? id : undefined
}

const secretOf = (id: string) => ({ namespace: tokenNamespace, name: secretNameOf(id) })

/** What a token, as it is stored now, permits for one use. */
export interface TokenVerdict {
  readonly refusal?: Refusal | undefined
  /** The token was created to replace the machine of this node name. */
  readonly replaces: boolean
}

/** Whether a token may be used so; nothing is counted. */
export async function checkToken(
  view: ClusterView,
  id: string,
  use: TokenUse,
  signal: AbortSignal,
): Promise<TokenVerdict> {
  return verdictOf(id, await view.get(wellKnownKinds.secret, secretOf(id), signal), use)
}

/**
 * Counts a use in the token's Secret, by compare and swap, so that servers side by side never give one
 * too many. Nothing is counted for a use that the token does not permit.
 */
export async function takeUse(
  view: ClusterView,
  id: string,
  use: TokenUse,
  signal: AbortSignal,
): Promise<TokenVerdict> {
  let verdict: TokenVerdict = { replaces: false }
  await changeObject(
    { view, kind: wellKnownKinds.secret, key: secretOf(id) },
    (present) => {
      verdict = verdictOf(id, present, use)
      if (verdict.refusal || !present) return undefined
      return withUse(present, use)
    },
    signal,
  )
  return verdict
}

/** The reason of a refusal for which only the token's absence is to blame. */
export const tokenGone = 'TokenGone'

function verdictOf(id: string, secret: KubeObject | undefined, use: TokenUse): TokenVerdict {
  const stored = secret && readTokenSecret(secret).stored
  const isGone =
    !stored ||
    secret.metadata.deletionTimestamp !== undefined ||
    isExpired(stored, use.nowMs) ||
    !stored.usages.has('authentication')
  if (isGone) {
    const message = `the token ${id} has been deleted or has expired`
    return { refusal: { reason: tokenGone, message }, replaces: false }
  }
  return { refusal: limitOf(stored, use), replaces: stored.replaceNodeName === use.nodeName }
}

function limitOf(stored: StoredToken, use: TokenUse): Refusal | undefined {
  const { token, boundNodeName, maxUses, uses = 0, recentUses = [] } = stored
  if (boundNodeName !== undefined && boundNodeName !== use.nodeName)
    return {
      reason: 'TokenBoundToNode',
      message: `the token ${token.id} is for the node ${goQuote(boundNodeName)} only`,
    }
  if (maxUses === undefined || uses < maxUses || recentUses.includes(use.requestUid))
    return undefined
  return {
    reason: 'TokenUsedUp',
    message: `the token ${token.id} is used up: it was good for ${maxUses === 1 ? 'one node' : `${maxUses} nodes`}`,
  }
}
