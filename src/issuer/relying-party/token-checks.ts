import { type Clock, kubeTime } from '../../core/index.ts'
import {
  audiencesOf,
  type CompactJws,
  checkTimes,
  type JsonObject,
  type KeySet,
  parseClaims,
  parseCompactJws,
  TokenRefused,
  textClaim,
  timeClaim,
} from '../../jose/index.ts'
import { maxKeysTried } from '../limits.ts'
import {
  readServiceAccountClaims,
  type ServiceAccountClaims,
  unverifiedIssuer,
} from '../tokens/claims.ts'
import { TokenRejected } from './errors.ts'

/** The rules for tokens. */
export interface TokenRules {
  readonly issuer: string
  /** One of these must be in the token. */
  readonly audiences: readonly string[]
  /** Accepted algorithms. */
  readonly algorithms: readonly string[]
  readonly clock: Clock
  readonly leewaySeconds: number
  readonly maxLifetimeSeconds: number | undefined
  readonly isIatRequired: boolean
  /** The published keys; throws IssuerUnavailable. */
  readonly keysFor: (kid: string | undefined) => Promise<KeySet>
}

/** What the checks have read from a token so far. */
export interface Findings {
  readonly token: string
  jws?: CompactJws
  keys?: KeySet
  claims?: JsonObject
  audiences?: readonly string[]
  expiresAt?: number
  account?: ServiceAccountClaims
}

/** One check of a token. */
export interface TokenCheck {
  readonly name: string
  /** What earlier checks must have found. */
  readonly needs: readonly (keyof Findings)[]
  /** Throws TokenRefused, TokenRejected or IssuerUnavailable. */
  readonly run: (found: Findings, rules: TokenRules) => void | Promise<void>
  /** What was found, for an explanation. */
  readonly describe: (found: Findings, rules: TokenRules) => string
}

const form: TokenCheck = {
  name: 'form',
  needs: [],
  run: (found) => {
    // JavaScript callers may pass `undefined` for an absent header.
    if (typeof found.token !== 'string' || found.token === '')
      throw new TokenRejected('missing', 'there is no token')
    found.jws = parseCompactJws(found.token)
  },
  describe: ({ token }) => `a compact JWS of ${token.length} characters, strictly encoded`,
}

const purpose: TokenCheck = {
  name: 'purpose',
  needs: ['jws'],
  run: ({ jws }) => {
    const typ = jws?.header.typ
    if (typ !== undefined && typ.toUpperCase() !== 'JWT')
      throw new TokenRejected('wrong-purpose', 'the token has another purpose (typ)')
  },
  describe: ({ jws }) => (jws?.header.typ === undefined ? 'no typ, as in Kubernetes' : 'typ JWT'),
}

const algorithm: TokenCheck = {
  name: 'algorithm',
  needs: ['jws'],
  run: ({ jws }, rules) => {
    if (!rules.algorithms.includes(jws?.header.alg ?? ''))
      throw new TokenRefused('bad-algorithm', "the token's algorithm is not accepted")
  },
  describe: ({ jws }) => jws?.header.alg ?? '',
}

/** Before anything is fetched: tokens of other issuers must not cause requests. */
const issuer: TokenCheck = {
  name: 'issuer',
  needs: [],
  run: ({ token }, rules) => {
    const unverified = unverifiedIssuer(token)
    if (unverified !== rules.issuer) throw otherIssuer(unverified, rules)
  },
  describe: (_found, rules) => rules.issuer,
}

const keys: TokenCheck = {
  name: 'keys',
  needs: ['jws'],
  run: async (found, rules) => {
    found.keys = await rules.keysFor(found.jws?.header.kid)
  },
  describe: (found) =>
    `the issuer publishes ${found.keys?.keys.length ?? 0} that can verify tokens`,
}

const key: TokenCheck = {
  name: 'key',
  needs: ['jws', 'keys'],
  run: (found) => {
    const kid = found.jws?.header.kid
    if (kid === undefined && (found.keys?.keys.length ?? 0) > maxKeysTried)
      throw new TokenRefused(
        'unknown-key',
        'the token has no key id (kid), and there are too many keys to try',
      )
    if (kid !== undefined && !found.keys?.has(kid))
      throw new TokenRefused('unknown-key', 'the token was signed with a key that is not published')
  },
  describe: ({ jws }) =>
    jws?.header.kid === undefined ? 'no kid, all keys are tried' : jws.header.kid,
}

const signature: TokenCheck = {
  name: 'signature',
  needs: ['jws', 'keys'],
  run: (found) => {
    if (found.jws) found.keys?.verify(found.jws)
  },
  describe: () => 'valid, with the algorithm of the key',
}

const claims: TokenCheck = {
  name: 'claims',
  needs: ['jws'],
  run: (found, rules) => {
    const read = parseClaims(found.jws?.payload ?? Buffer.alloc(0))
    found.claims = read
    // Checked again on the verified bytes.
    if (textClaim(read, 'iss') !== rules.issuer) throw otherIssuer(textClaim(read, 'iss'), rules)
    textClaim(read, 'sub')
  },
  describe: (found) => `unambiguous: ${Object.keys(found.claims ?? {}).join(', ')}`,
}

const audience: TokenCheck = {
  name: 'audience',
  needs: ['claims'],
  run: (found, rules) => {
    const present = audiencesOf(found.claims ?? {}) ?? []
    const common = rules.audiences.filter((each) => present.includes(each))
    if (common.length === 0)
      throw new TokenRejected(
        'wrong-audience',
        `audience mismatch: the token has ${quoted(present)}, expected ${quoted(rules.audiences)}`,
      )
    found.audiences = common
  },
  describe: (found) => quoted(found.audiences ?? []),
}

const times: TokenCheck = {
  name: 'times',
  needs: ['claims'],
  run: (found, rules) => {
    found.expiresAt = checkTimes(found.claims ?? {}, {
      nowMs: rules.clock.now(),
      leewaySeconds: rules.leewaySeconds,
      isIatRequired: rules.isIatRequired,
      ...(rules.maxLifetimeSeconds !== undefined && {
        maxLifetimeSeconds: rules.maxLifetimeSeconds,
      }),
    })
  },
  describe: (found) => {
    const iat = timeClaim(found.claims ?? {}, 'iat')
    const issued = iat === undefined ? '' : `issued ${at(iat * 1000)}, `
    return `${issued}valid until ${at(found.expiresAt ?? 0)}`
  },
}

const serviceAccount: TokenCheck = {
  name: 'service account',
  needs: ['claims'],
  run: (found) => {
    const read = found.claims ?? {}
    // For other issuers an invalid jti is ignored, as in kube-apiserver.
    if (Object.hasOwn(read, 'jti')) textClaim(read, 'jti')
    found.account = readServiceAccountClaims(read)
  },
  describe: ({ account }) => {
    const { namespace = '', serviceAccount: named, bound } = account ?? {}
    const binding = bound ? `, bound to ${bound.kind} ${bound.name}` : ''
    return `${namespace}/${named?.name ?? ''} (uid ${named?.uid ?? ''})${binding}`
  },
}

const otherIssuer = (found: string | undefined, { issuer: expected }: TokenRules): TokenRejected =>
  new TokenRejected(
    'wrong-issuer',
    found === undefined
      ? 'the token has no issuer'
      : `issuer mismatch: the token has ${JSON.stringify(found.slice(0, 256))}, expected ${JSON.stringify(expected)}`,
  )

const quoted = (audiences: readonly string[]): string =>
  audiences.length === 0 ? 'none' : audiences.map((each) => JSON.stringify(each)).join(', ')

const maxDateMs = 8.64e15

const at = (ms: number): string => (ms > maxDateMs ? 'never' : kubeTime(ms))

/** The checks of every token, in this order: nothing is fetched for a token of another issuer. */
export const tokenChecks: readonly TokenCheck[] = [
  form,
  purpose,
  algorithm,
  issuer,
  keys,
  key,
  signature,
  claims,
  audience,
  times,
]

/** The checks of a token of a service account. */
export const serviceAccountChecks: readonly TokenCheck[] = [...tokenChecks, serviceAccount]
