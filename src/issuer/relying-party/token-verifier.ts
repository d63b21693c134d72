import { type JsonObject, member, textClaim } from '../../jose/index.ts'
import { type ServiceAccountClaims, unverifiedIssuer } from '../tokens/claims.ts'
import { asRejection } from './errors.ts'
import { type Explanation, explainToken } from './explain-token.ts'
import { rulesOf, type VerifierOptions } from './options.ts'
import {
  type Findings,
  serviceAccountChecks,
  type TokenCheck,
  type TokenRules,
  tokenChecks,
} from './token-checks.ts'

/** An accepted token. */
export interface VerifiedToken {
  readonly issuer: string
  readonly subject: string
  /** The names of your application that are in the `aud` of the token. */
  readonly audiences: readonly string[]
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** `jti`, if it is a string. */
  readonly id?: string
  /** All claims. */
  readonly claims: JsonObject
}

/** An authenticated workload. */
export interface VerifiedServiceAccount extends VerifiedToken, ServiceAccountClaims {}

/** Verifies tokens. */
export interface TokenVerifier<Verified extends VerifiedToken = VerifiedToken> {
  readonly issuers: readonly string[]
  /** Verifies a token; throws TokenRejected (401) or IssuerUnavailable (503). */
  verify(token: string): Promise<Verified>
  /** Every check with its outcome, for diagnosis. */
  explain(token: string): Promise<Explanation>
}

/** Verifies tokens of Kubernetes service accounts by the published keys of their issuer. */
export const createServiceAccountVerifier = (
  options: VerifierOptions,
): TokenVerifier<VerifiedServiceAccount> =>
  verifierOf(rulesOf(options), serviceAccountChecks, (found) => {
    const { account } = found
    if (!account) throw new TypeError('a token without a service account was accepted')
    return { ...verifiedToken(found), ...account }
  })

/** Verifies tokens of any OIDC issuer; claims of service accounts are not required. */
export const createTokenVerifier = (options: VerifierOptions): TokenVerifier =>
  verifierOf({ ...rulesOf(options), isIatRequired: false }, tokenChecks, verifiedToken)

/** Verifies tokens of several issuers, each with the verifier of its issuer. */
export function anyIssuer<Verified extends VerifiedToken>(
  ...verifiers: readonly TokenVerifier<Verified>[]
): TokenVerifier<Verified> {
  const byIssuer = new Map(verifiers.flatMap((each) => each.issuers.map((name) => [name, each])))
  const issuers = verifiers.flatMap((each) => each.issuers)
  if (byIssuer.size < issuers.length) throw new TypeError('two verifiers have the same issuer')
  const [first] = verifiers
  if (!first) throw new TypeError('anyIssuer needs a verifier')
  // A token of an unknown issuer is rejected by the first one.
  const choose = (token: string) => byIssuer.get(unverifiedIssuer(token) ?? '') ?? first
  return {
    issuers,
    verify: async (token) => choose(token).verify(token),
    explain: async (token) => choose(token).explain(token),
  }
}

function verifierOf<Verified extends VerifiedToken>(
  rules: TokenRules,
  checks: readonly TokenCheck[],
  resultOf: (found: Findings) => Verified,
): TokenVerifier<Verified> {
  return {
    issuers: [rules.issuer],
    verify: async (token) => {
      const found: Findings = { token }
      try {
        for (const check of checks) await check.run(found, rules)
        return resultOf(found)
      } catch (error) {
        throw asRejection(error)
      }
    },
    explain: (token) => explainToken(token, rules, checks),
  }
}

function verifiedToken({ claims, audiences, expiresAt }: Findings): VerifiedToken {
  if (!claims || !audiences || expiresAt === undefined)
    throw new TypeError('a token was accepted without all checks')
  const jti = member(claims, 'jti')
  return {
    issuer: textClaim(claims, 'iss'),
    subject: textClaim(claims, 'sub'),
    audiences,
    expiresAt,
    ...(typeof jti === 'string' && jti !== '' && { id: jti }),
    claims,
  }
}
