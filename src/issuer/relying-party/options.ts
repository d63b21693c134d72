import { type Clock, type Logger, silentLogger, systemClock } from '../../core/index.ts'
import { addressTest, type PrivateAddresses } from '../../http/index.ts'
import {
  type DocumentCredential,
  type FetchedDocument,
  type FetchRules,
  fetchDocument,
  problemOfUrl,
  type ResolveName,
} from './fetch-document.ts'
import { discoveryUrlOf, readJwksUri, readKeySet } from './provider-metadata.ts'
import { RemoteKeys } from './remote-keys.ts'
import type { TokenRules } from './token-checks.ts'

/** What tokens of issuers are signed with; never with a shared secret. */
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

/** What clusters sign with; the others are for providers that insist. */
const usualAlgorithms: readonly SigningAlgorithm[] = ['RS256', 'ES256', 'ES384', 'ES512']

/** One of them. */
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** Whose tokens are accepted, for whom, and how their issuer's documents are had. */
export interface VerifierOptions {
  /** Byte for byte the `iss` of tokens and the `issuer` of the discovery document. */
  readonly issuer: string
  /** Your own name: one of these must be in the `aud` of a token. */
  readonly audience: string | readonly string[]
  /** Roots (PEM) to trust instead of the public ones, for an issuer with a private CA. */
  readonly caPem?: string | undefined
  /** Private addresses that documents may be fetched from: none unless given; `true` for all, or ranges such as `10.0.0.0/8`. */
  readonly allowPrivateAddresses?: PrivateAddresses | undefined
  /** For tests: lets an issuer on this machine itself speak http. */
  readonly allowHttpOnLoopback?: boolean | undefined
  /** Where the discovery document is, if it is not below the issuer. */
  readonly discoveryUrl?: string | undefined
  /** Where the keys are, to do without discovery. */
  readonly jwksUri?: string | undefined
  /** For documents that are not public: a bearer token, shown to this one origin and no other. */
  readonly credential?: DocumentCredential | undefined
  /** Fetches documents in place of our own way, for example through a proxy; the guards are then yours. */
  readonly fetch?: ((url: URL) => Promise<FetchedDocument>) | undefined
  /** What tokens may be signed with; RS256, ES256, ES384 and ES512 unless given. */
  readonly algorithms?: readonly SigningAlgorithm[] | undefined
  /** How far the clocks may differ; 60 seconds unless given. */
  readonly leewaySeconds?: number | undefined
  /** Longest life of a token that is accepted, in seconds. */
  readonly longestLifeSeconds?: number | undefined
  /** Keys are fetched anew at least this often, whatever `max-age` says; a day unless given. */
  readonly longestCacheMs?: number | undefined
  /** How long the last good keys serve on while the issuer cannot be reached; an hour unless given. */
  readonly staleMs?: number | undefined
  readonly clock?: Clock | undefined
  readonly log?: Logger | undefined
  /** How names are looked up; for tests. */
  readonly resolve?: ResolveName | undefined
}

const minuteMs = 60_000
/** As the strictest of other relying parties have it. */
const limits = { timeoutMs: 5_000, maxBytes: 50 * 1024 }
/** The most that can be asked for, as Kubernetes has it. */
const longestSeconds = 2 ** 32

/** The rules that follow from options; throws TypeError for what could never work. */
export function rulesOf(options: VerifierOptions): TokenRules {
  const { issuer, clock = systemClock } = options
  const audiences = typeof options.audience === 'string' ? [options.audience] : options.audience
  requireSense(options, audiences)
  const fetchRules: FetchRules = {
    isAllowedAddress: addressTest(options.allowPrivateAddresses ?? false),
    allowsHttpOnLoopback: options.allowHttpOnLoopback ?? false,
    caPem: options.caPem,
    resolve: options.resolve,
    credential: options.credential,
    ...limits,
  }
  requireUrl('issuer', issuer, fetchRules)
  requireUrl('discoveryUrl', options.discoveryUrl, fetchRules)
  requireUrl('jwksUri', options.jwksUri, fetchRules)
  const keys = remoteKeys(options, fetchRules, clock)
  return {
    issuer,
    audiences,
    algorithms: options.algorithms ?? usualAlgorithms,
    clock,
    leewaySeconds: options.leewaySeconds ?? 60,
    longestSeconds: options.longestLifeSeconds ?? longestSeconds,
    isIatRequired: true,
    keysFor: (kid) => keys.forToken(kid),
  }
}

function remoteKeys(options: VerifierOptions, fetchRules: FetchRules, clock: Clock): RemoteKeys {
  const { issuer } = options
  return new RemoteKeys({
    issuer,
    jwksUri: options.jwksUri,
    discoveryUrl: options.discoveryUrl ?? discoveryUrlOf(issuer),
    readJwksUri: (body) => readJwksUri(body, issuer, fetchRules),
    readKeySet: (body) => readKeySet(body, options.algorithms),
    fetch: options.fetch ?? ((url) => fetchDocument(url, fetchRules)),
    clock,
    log: options.log ?? silentLogger,
    rules: {
      patienceMs: 2 * limits.timeoutMs,
      shortestMs: minuteMs,
      longestMs: options.longestCacheMs ?? 24 * 60 * minuteMs,
      usualMs: 5 * minuteMs,
      cooldownMs: minuteMs / 2,
      retryMs: minuteMs / 12,
      staleMs: options.staleMs ?? 60 * minuteMs,
    },
  })
}

/** What is read from an environment may be nothing or no number, and with a leeway of NaN no token would end. */
function requireSense(options: VerifierOptions, audiences: readonly string[] | undefined): void {
  const { issuer, algorithms = usualAlgorithms } = options
  const problems = [
    !issuer && 'issuer is missing',
    /[?#]/.test(issuer) && 'issuer has a query or a fragment',
    !(audiences?.length && audiences.every(Boolean)) &&
      'audience must be your own name, which tokens have in their aud',
    !(isList(algorithms) && algorithms.every((each) => signingAlgorithms.includes(each))) &&
      `algorithms must be some of ${signingAlgorithms.join(', ')}`,
    problemOfAccess(options),
    ...measures.map((name) => isMeasure(options[name]) || `${name} must be a number from 0 on`),
  ]
  const problem = problems.find((each) => typeof each === 'string')
  if (problem !== undefined) throw new TypeError(problem)
}

function problemOfAccess({ caPem, credential }: VerifierOptions): string | undefined {
  // Node.js takes an empty text for none, and would trust the public CAs.
  if (caPem?.includes('-----BEGIN CERTIFICATE-----') === false) return 'caPem has no certificate'
  if (!credential || originOf(credential.origin) === credential.origin) return undefined
  return 'credential.origin must be an origin, as in https://issuer.example'
}

const isList = (value: unknown): boolean => Array.isArray(value) && value.length > 0

const measures = ['leewaySeconds', 'longestLifeSeconds', 'longestCacheMs', 'staleMs'] as const

const isMeasure = (value: number | undefined): boolean =>
  value === undefined || (Number.isFinite(value) && value >= 0)

const originOf = (text: string): string | undefined =>
  URL.canParse(text) ? new URL(text).origin : undefined

function requireUrl(name: string, text: string | undefined, rules: FetchRules): void {
  const problem = text === undefined ? undefined : problemOfUrl(text, rules)
  if (problem !== undefined) throw new TypeError(`${name} ${problem}`)
}
