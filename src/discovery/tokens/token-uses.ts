import { isRecord, type KubeObject } from '../../core/index.ts'
import { isoSeconds, readTokenSecret, recentUsesField, usesField } from './stored-token.ts'

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
