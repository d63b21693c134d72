import { isRecord } from '../../core/index.ts'

/**
 * What a token says of itself, without a look at its signature: to show it or to know its end, never to trust it.
 * Undefined if it is no JWT.
 */
export function unverifiedClaims(token: string): Readonly<Record<string, unknown>> | undefined {
  const parts = token.split('.')
  const [, payload = ''] = parts
  if (parts.length !== 3 || !/^[\w-]+$/.test(payload)) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
    return isRecord(claims) ? claims : undefined
  } catch {
    return undefined
  }
}

/** When a JWT expires by its own word, in milliseconds since 1970. */
export function claimedExpiry(token: string): number | undefined {
  const exp = unverifiedClaims(token)?.['exp']
  return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1_000 : undefined
}
