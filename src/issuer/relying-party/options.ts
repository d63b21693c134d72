import { type Clock, type Logger, silentLogger, systemClock } from '../../core/index.ts'
import {
  type AllowHttp,
  addressTest,
  type PrivateAddresses,
  type ResolveName,
  urlProblem,
} from '../../http/fetch/index.ts'
import { defaultLeewaySeconds, maxLifetimeSeconds } from '../limits.ts'
import {
  type DocumentCredential,
  type DocumentRules,
  fetchProviderDocument,
  type ProviderDocument,
  providerKeys,
} from './provider-keys.ts'
import type { TokenRules } from './token-checks.ts'

/** Algorithms of issuers; never those with a shared secret. */
const signingAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'ES256',
  'ES384',
  'ES512',
  'PS256',
  'PS384',
  'PS512',
] as const

/** The algorithms of clusters; others must be accepted explicitly. */
const defaultAlgorithms: readonly SigningAlgorithm[] = ['RS256', 'ES256', 'ES384', 'ES512']

/** An algorithm that tokens may be signed with. */
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** Which tokens are accepted, and how the documents of their issuer are fetched. */
export interface VerifierOptions {
  /** Byte for byte the `iss` of tokens and the `issuer` of the discovery document. */
  readonly issuer: string
  /** The names of your application: one of them must be in the `aud` of a token. */
  readonly audience: string | readonly string[]
  /** CAs (PEM) to trust instead of the public ones, for an issuer with a private CA. */
  readonly caPem?: string | undefined
  /** Private addresses that documents may be fetched from: `true` for all, or ranges such as `10.0.0.0/8`; none by default. */
  readonly allowPrivateAddresses?: PrivateAddresses | undefined
  /** For tests: allows http on loopback addresses. */
  readonly allowHttpOnLoopback?: boolean | undefined
  /** URL of the discovery document; below the issuer by default. */
  readonly discoveryUrl?: string | undefined
  /** URL of the keys; from the discovery document by default. */
  readonly jwksUri?: string | undefined
  /** For documents that are not public: a bearer token that is sent to its origin only. */
  readonly credential?: DocumentCredential | undefined
  /** Replaces the built-in fetch, for example to use a proxy; it must enforce limits and allowed addresses itself. */
  readonly fetch?: ((url: URL) => Promise<ProviderDocument>) | undefined
  /** Accepted algorithms; RS256, ES256, ES384 and ES512 by default. */
  readonly algorithms?: readonly SigningAlgorithm[] | undefined
  /** Accepted clock skew; 60 seconds by default. */
  readonly leewaySeconds?: number | undefined
  /** Maximum lifetime of an accepted token, in seconds. */
  readonly longestLifeSeconds?: number | undefined
  /** Maximum time between two fetches of the keys, whatever their `max-age`; a day by default. */
  readonly longestCacheMs?: number | undefined
  /** For how long expired keys are used while the issuer is unreachable; an hour by default. */
  readonly staleMs?: number | undefined
  readonly clock?: Clock | undefined
  readonly log?: Logger | undefined
  /** Resolves names; for tests. */
  readonly resolve?: ResolveName | undefined
}

const minuteMs = 60_000
/** As strict as the strictest known relying party. */
const limits = { timeoutMs: 5_000, maxBytes: 50 * 1024 }

/** The rules of these options; throws TypeError for invalid ones. */
export function rulesOf(options: VerifierOptions): TokenRules {
  const { issuer, clock = systemClock } = options
  const audiences = typeof options.audience === 'string' ? [options.audience] : options.audience
  requireValid(options, audiences)
  const allowHttp = options.allowHttpOnLoopback ? 'loopback' : 'never'
  requireUrl('issuer', issuer, allowHttp)
  requireUrl('discoveryUrl', options.discoveryUrl, allowHttp)
  requireUrl('jwksUri', options.jwksUri, allowHttp)
  return {
    issuer,
    audiences,
    algorithms: options.algorithms ?? defaultAlgorithms,
    clock,
    leewaySeconds: options.leewaySeconds ?? defaultLeewaySeconds,
    maxLifetimeSeconds: options.longestLifeSeconds ?? maxLifetimeSeconds,
    isIatRequired: true,
    keysFor: keysOf(options, allowHttp, clock),
  }
}

function keysOf(
  options: VerifierOptions,
  allowHttp: AllowHttp,
  clock: Clock,
): TokenRules['keysFor'] {
  const { caPem, resolve, credential, fetch, log = silentLogger } = options
  const rules: DocumentRules = {
    isAllowedAddress: addressTest(options.allowPrivateAddresses ?? false),
    allowHttp,
    caPem,
    resolve,
    credential,
    ...limits,
  }
  return providerKeys({
    ...options,
    allowHttp,
    fetch: (url, signal) => (fetch ? fetch(url) : fetchProviderDocument(url, rules, signal)),
    clock,
    log,
    limits: {
      loadTimeoutMs: 2 * limits.timeoutMs,
      cache: {
        minMs: minuteMs,
        maxMs: options.longestCacheMs ?? 24 * 60 * minuteMs,
        defaultMs: 5 * minuteMs,
      },
      cooldownMs: minuteMs / 2,
      retryMs: minuteMs / 12,
      maxStaleMs: options.staleMs ?? 60 * minuteMs,
    },
  })
}

/** Values from an environment may be empty or NaN, and with a leeway of NaN no token would expire. */
function requireValid(options: VerifierOptions, audiences: readonly string[] | undefined): void {
  const { issuer, algorithms = defaultAlgorithms } = options
  const problems = [
    !issuer && 'issuer is missing',
    /[?#]/.test(issuer) && 'issuer has a query or a fragment',
    !(audiences?.length && audiences.every(Boolean)) &&
      'audience must be the name of your application, as in the aud of tokens',
    !(isList(algorithms) && algorithms.every((each) => signingAlgorithms.includes(each))) &&
      `algorithms must be some of ${signingAlgorithms.join(', ')}`,
    accessProblem(options),
    ...durations.map(
      (name) => isDuration(options[name]) || `${name} must be a non-negative number`,
    ),
  ]
  const problem = problems.find((each) => typeof each === 'string')
  if (problem !== undefined) throw new TypeError(problem)
}

function accessProblem({ caPem, credential }: VerifierOptions): string | undefined {
  // Node.js ignores an empty string, and would trust the public CAs.
  if (caPem?.includes('-----BEGIN CERTIFICATE-----') === false)
    return 'caPem contains no certificate'
  if (!credential || originOf(credential.origin) === credential.origin) return undefined
  return 'credential.origin must be an origin, as in https://issuer.example'
}

const isList = (value: unknown): boolean => Array.isArray(value) && value.length > 0

const durations = ['leewaySeconds', 'longestLifeSeconds', 'longestCacheMs', 'staleMs'] as const

const isDuration = (value: number | undefined): boolean =>
  value === undefined || (Number.isFinite(value) && value >= 0)

const originOf = (text: string): string | undefined =>
  URL.canParse(text) ? new URL(text).origin : undefined

function requireUrl(name: string, text: string | undefined, allowHttp: AllowHttp): void {
  const problem = text === undefined ? undefined : urlProblem(text, allowHttp)
  if (problem !== undefined) throw new TypeError(`${name} ${problem}`)
}
