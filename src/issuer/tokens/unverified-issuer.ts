import { isRecord } from '../../core/index.ts'
import { longestToken } from '../../jose/index.ts'

/**
 * Who a token says it is from, before anything is verified, so that tokens of others go on to
 * others; undefined for what is no such token.
 */
export function unverifiedIssuer(token: string): string | undefined {
  if (typeof token !== 'string' || token.length > longestToken) return undefined
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString())
    const issuer = isRecord(claims) ? claims['iss'] : undefined
    return typeof issuer === 'string' ? issuer : undefined
  } catch {
    return undefined
  }
}
