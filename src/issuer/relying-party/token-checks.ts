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
import {
  readServiceAccountClaims,
  type ServiceAccountClaims,
  unverifiedIssuer,
} from '../tokens/claims.ts'
import { TokenRejected } from './errors.ts'

/** What a token is judged by. */
export interface TokenRules {
  readonly issuer: string
  /** One of these must be in the token. */
  readonly audiences: readonly string[]
  /** What a token may be signed with. */
  readonly algorithms: readonly string[]
  readonly clock: Clock
  readonly leewaySeconds: number
  readonly longestSeconds: number | undefined
  readonly isIatRequired: boolean
  /** The published keys, or a throw that says why there are none. */
  readonly keysFor: (kid: string | undefined) => Promise<KeySet>
}

/** What has been found out about a token so far. */
export interface Findings {
  readonly token: string
  jws?: CompactJws
  keys?: KeySet
  claims?: JsonObject
  audiences?: readonly string[]
  expiresAt?: number
  account?: ServiceAccountClaims
}

/** One thing that must be true of a token. */
export interface TokenCheck {
  readonly name: string
  /** Without these it cannot be told. */
  readonly needs: readonly (keyof Findings)[]
  /** Throws TokenRefused, TokenRejected or IssuerUnavailable. */
  readonly run: (found: Findings, rules: TokenRules) => void | Promise<void>
  /** What was found, for whoever wants an explanation. */
  readonly tell: (found: Findings, rules: TokenRules) => string
}

const form: TokenCheck = {
  name: 'form',
  needs: [],
  run: (found) => {
    // A header that is not there is `undefined` to callers without types.
    if (typeof found.token !== 'string' || found.token === '')
      throw new TokenRejected('missing', 'there is no token')
    found.jws = parseCompactJws(found.token)
  },
  tell: ({ token }) => `a compact JWS of ${token.length} characters, strictly encoded`,
}

const purpose: TokenCheck = {
  name: 'purpose',
  needs: ['jws'],
  run: ({ jws }) => {
    const typ = jws?.header.typ
    if (typ !== undefined && typ.toUpperCase() !== 'JWT')
      throw new TokenRejected('wrong-purpose', 'the token was made for another purpose (typ)')
  },
  tell: ({ jws }) =>
    jws?.header.typ === undefined ? 'no typ, as Kubernetes makes them' : 'typ JWT',
}

const algorithm: TokenCheck = {
  name: 'algorithm',
  needs: ['jws'],
  run: ({ jws }, rules) => {
    if (!rules.algorithms.includes(jws?.header.alg ?? ''))
      throw new TokenRefused('bad-algorithm', "the token's algorithm is not one that is accepted")
  },
  tell: ({ jws }) => jws?.header.alg ?? '',
}

/** Before anything is fetched: whoever sends tokens of others must not make us ask. */
const issuer: TokenCheck = {
  name: 'issuer',
  needs: [],
  run: ({ token }, rules) => {
    const said = unverifiedIssuer(token)
    if (said !== rules.issuer) throw otherIssuer(said, rules)
  },
  tell: (_found, rules) => rules.issuer,
}

const keys: TokenCheck = {
  name: 'keys',
  needs: ['jws'],
  run: async (found, rules) => {
    found.keys = await rules.keysFor(found.jws?.header.kid)
  },
  tell: (found) => `the issuer publishes ${found.keys?.keys.length ?? 0} that can verify tokens`,
}

/** Trying keys costs time, and anybody can send tokens that name none. */
const mostTried = 10

const key: TokenCheck = {
  name: 'key',
  needs: ['jws', 'keys'],
  run: (found) => {
    const kid = found.jws?.header.kid
    if (kid === undefined && (found.keys?.keys.length ?? 0) > mostTried)
      throw new TokenRefused('unknown-key', 'the token names no key, and there are too many to try')
    if (kid !== undefined && !found.keys?.has(kid))
      throw new TokenRefused('unknown-key', 'the token was signed with a key that is not published')
  },
  tell: ({ jws }) =>
    jws?.header.kid === undefined ? 'none is named, all are tried' : jws.header.kid,
}

const signature: TokenCheck = {
  name: 'signature',
  needs: ['jws', 'keys'],
  run: (found) => {
    if (found.jws) found.keys?.verify(found.jws)
  },
  tell: () => 'by that key, with its own algorithm',
}

const claims: TokenCheck = {
  name: 'claims',
  needs: ['jws'],
  run: (found, rules) => {
    const read = parseClaims(found.jws?.payload ?? Buffer.alloc(0))
    found.claims = read
    // The bytes that were verified decide, not those that were glanced at before.
    if (textClaim(read, 'iss') !== rules.issuer) throw otherIssuer(textClaim(read, 'iss'), rules)
    textClaim(read, 'sub')
  },
  tell: (found) => `one reading only: ${Object.keys(found.claims ?? {}).join(', ')}`,
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
        `the token is for ${listed(present)} and not for ${listed(rules.audiences)}`,
      )
    found.audiences = common
  },
  tell: (found) => listed(found.audiences ?? []),
}

const times: TokenCheck = {
  name: 'times',
  needs: ['claims'],
  run: (found, rules) => {
    found.expiresAt = checkTimes(found.claims ?? {}, {
      nowMs: rules.clock.now(),
      leewaySeconds: rules.leewaySeconds,
      isIatRequired: rules.isIatRequired,
      ...(rules.longestSeconds !== undefined && { longestSeconds: rules.longestSeconds }),
    })
  },
  tell: (found) => {
    const iat = timeClaim(found.claims ?? {}, 'iat')
    const issued = iat === undefined ? '' : `issued ${at(iat * 1000)}, `
    return `${issued}good until ${at(found.expiresAt ?? 0)}`
  },
}

const serviceAccount: TokenCheck = {
  name: 'service account',
  needs: ['claims'],
  run: (found) => {
    const read = found.claims ?? {}
    // Of other issuers an id that is none is left out, as kube-apiserver does.
    if (Object.hasOwn(read, 'jti')) textClaim(read, 'jti')
    found.account = readServiceAccountClaims(read)
  },
  tell: ({ account }) => {
    const { namespace = '', serviceAccount: named, bound } = account ?? {}
    const binding = bound ? `, bound to ${bound.kind} ${bound.name}` : ''
    return `${namespace}/${named?.name ?? ''} (uid ${named?.uid ?? ''})${binding}`
  },
}

const otherIssuer = (said: string | undefined, { issuer: wanted }: TokenRules): TokenRejected =>
  new TokenRejected(
    'wrong-issuer',
    said === undefined
      ? 'the token names no issuer'
      : `the token is of the issuer ${JSON.stringify(said.slice(0, 256))} and not of ${JSON.stringify(wanted)}`,
  )

const listed = (audiences: readonly string[]): string =>
  audiences.length === 0 ? 'nobody' : audiences.map((each) => JSON.stringify(each)).join(', ')

const lastDay = 8.64e15

const at = (ms: number): string => (ms > lastDay ? 'the end of days' : kubeTime(ms))

/** What must be true of every token, in this order: nothing is fetched for a token that is not of the issuer. */
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

/** What must be true of a token of a service account besides. */
export const serviceAccountChecks: readonly TokenCheck[] = [...tokenChecks, serviceAccount]
