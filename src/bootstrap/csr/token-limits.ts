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

/** Why a token, as the cluster has it now, is not good for this use; undefined if it is. */
export async function tokenRefusal(
  view: ClusterView,
  id: string,
  use: TokenUse,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  return refusalOf(id, await view.get(wellKnownKinds.secret, secretOf(id), signal), use)
}

/**
 * Counts a use in the token's Secret, by compare and swap, so that servers side by side never give one
 * too many. Says why not if the token is not good for it.
 */
export async function takeUse(
  view: ClusterView,
  id: string,
  use: TokenUse,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  let refusal: Refusal | undefined
  await changeObject(
    { view, kind: wellKnownKinds.secret, key: secretOf(id) },
    (present) => {
      refusal = refusalOf(id, present, use)
      if (refusal || !present) return undefined
      return withUse(present, use)
    },
    signal,
  )
  return refusal
}

/** The reason of a refusal for which only the token's absence is to blame. */
export const tokenGone = 'TokenGone'

function refusalOf(id: string, secret: KubeObject | undefined, use: TokenUse): Refusal | undefined {
  const stored = secret && readTokenSecret(secret).stored
  const isGone =
    !stored ||
    secret.metadata.deletionTimestamp !== undefined ||
    isExpired(stored, use.nowMs) ||
    !stored.usages.has('authentication')
  if (isGone)
    return { reason: tokenGone, message: `the token ${id} has been deleted or has expired` }
  return limitOf(stored, use)
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
