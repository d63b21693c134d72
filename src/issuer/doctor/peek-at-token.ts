import { audiencesOf, decodeBase64url, parseJsonObject } from '../../jose/index.ts'
import { unverifiedIssuer } from '../tokens/unverified-issuer.ts'

/** What a token says of itself before anything is verified. */
export interface TokenClaimsToBe {
  readonly issuer: string | undefined
  readonly audiences: readonly string[]
}

/** Reads for whom and by whom a token claims to be; to ask the right issuer, never to believe it. */
export function peekAtToken(token: string): TokenClaimsToBe {
  const payload = decodeBase64url(token.split('.')[1] ?? '')
  const claims = payload && parseJsonObject(payload)
  try {
    return { issuer: unverifiedIssuer(token), audiences: (claims && audiencesOf(claims)) ?? [] }
  } catch {
    return { issuer: unverifiedIssuer(token), audiences: [] }
  }
}
