import { type IssueToken, tokenRequestHandler, tokenSubresource } from '../../api/index.ts'
import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  ApiError,
  type ClusterView,
  hasReason,
  type KubeObject,
  type Logger,
  type MetricsRegistry,
  WrongUsage,
  wellKnown,
} from '../../core/index.ts'
import {
  createTokenIssuer,
  type IssuerFacts,
  type IssuerKeys,
  type IssuerNames,
  type IssuerStart,
  jwksPath,
  type KeptIssuer,
  keptIssuer,
  legacyServiceAccountTokens,
  openStaticKeys,
  problemOfDiscovery,
  problemOfIssuer,
  readIssuerRecord,
  StoredKeys,
  serviceAccountTokens,
  type TokenUse,
} from '../../issuer/index.ts'
import type { Feature, FeatureContext } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'
import { IssuerDocumentServer, issuerPaths } from '../routes/issuer-documents.ts'
import { signingKeyRoutes } from '../routes/signing-keys.ts'

const hourMs = 3_600_000
const longestMs = 2 ** 32 * 1000

/** What is wrong with the options of the issuer, each as one sentence. */
const problemsOfIssuerOptions = (options: ServerOptions): string[] => [
  ...problemsOfNames(options),
  ...problemsOfKeys(options),
  ...problemsOfTimes(options),
  ...(options.serviceAccountIssuerPublic && !options.anonymousAuth
    ? [
        '--service-account-issuer-public needs --anonymous-auth: nobody else comes without a credential',
      ]
    : []),
]

function problemsOfNames({
  serviceAccountIssuer: issuers,
  serviceAccountJwksUri: jwksUri,
  apiAudiences,
}: ServerOptions): string[] {
  const isHttps =
    jwksUri === undefined || (URL.canParse(jwksUri) && new URL(jwksUri).protocol === 'https:')
  return [
    ...issuers.flatMap((issuer) => {
      const problem = problemOfIssuer(issuer)
      return problem === undefined ? [] : [`--service-account-issuer ${problem}`]
    }),
    ...(new Set(issuers).size < issuers.length
      ? ['--service-account-issuer names the same issuer twice']
      : []),
    ...(isHttps ? [] : ['--service-account-jwks-uri must be an https URL']),
    ...(apiAudiences.includes('') ? ['--api-audiences must not be empty'] : []),
  ]
}

function problemsOfKeys(options: ServerOptions): string[] {
  const { serviceAccountSigningKeyFile: signingKey, serviceAccountKeyRotationPeriod } = options
  const hasKeyFiles = options.serviceAccountKeyFile.length > 0
  return [
    ...(hasKeyFiles && signingKey === undefined
      ? ['--service-account-key-file needs --service-account-signing-key-file']
      : []),
    ...(signingKey !== undefined && serviceAccountKeyRotationPeriod > 0
      ? [
          '--service-account-key-rotation-period needs keys that are kept in the cluster: leave out --service-account-signing-key-file',
        ]
      : []),
  ]
}

function problemsOfTimes({
  serviceAccountMaxTokenExpiration: longest,
  serviceAccountKeyRotationPeriod: period,
}: ServerOptions): string[] {
  return [
    ...(longest > 0 && (longest < hourMs || longest > longestMs)
      ? ['--service-account-max-token-expiration must be from an hour to 2^32 seconds, or 0']
      : []),
    ...(period > 0 && period < 24 * hourMs
      ? ['--service-account-key-rotation-period must be a day or more, or 0']
      : []),
  ]
}

const roleName = 'system:service-account-issuer-discovery'
const bindingName = 'sallyport:service-account-issuer-public'
const rbac = 'rbac.authorization.k8s.io'

const everybody = [wellKnown.authenticated, wellKnown.unauthenticated].map((name) => ({
  apiGroup: rbac,
  kind: 'Group',
  name,
}))

const binding: KubeObject = {
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: {
    name: bindingName,
    annotations: { 'sallyport.dev/made-by': '--service-account-issuer-public' },
  },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: roleName },
  subjects: everybody,
}

/** Lets everybody read the documents of the issuer, or takes that right back; other bindings stay as they are. */
async function setIssuerPublic(
  view: ClusterView,
  isPublic: boolean,
  signal: AbortSignal,
): Promise<void> {
  const kind = rbacKinds.clusterRoleBinding
  if (isPublic) {
    const target = { view, kind, key: { name: bindingName } }
    await changeObject(
      target,
      (present) => (present ? { ...present, subjects: everybody } : binding),
      signal,
    )
    return
  }
  if (!(await view.get(kind, { name: bindingName }, signal))) return
  await view.write('delete', binding, {}, signal).catch((error: unknown) => {
    if (!hasReason(error, 'NotFound')) throw error
  })
}

/** Tokens of service accounts: issued, accepted, and verifiable by anyone outside. */
export const issuerFeature: Feature = async (context) => {
  const { options, view, clock, log, metrics, bodies, signal } = context
  const problems = problemsOfIssuerOptions(options)
  if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
  const { keys, noteToken, isRing } = await openKeys(context)
  const keeper = isRing ? { values: context.sealed, clock } : undefined
  // From the second start on the issuer is known before the first request comes.
  const names = new LateNames(options, (await readIssuerRecord(view, signal))?.issuer)
  const documents = new IssuerDocumentServer(keys)
  const longestMs = options.serviceAccountMaxTokenExpiration
  const issue = createTokenIssuer({
    view,
    authorizer: context.authorizer,
    keys,
    names,
    clock,
    ...(longestMs > 0 && { longestSeconds: longestMs / 1000 }),
    extendsExpiration: options.serviceAccountExtendTokenExpiration,
    noteToken,
  })
  const issueToken: IssueToken = async (ask, aborted) => {
    names.requireSettled()
    return issue(ask, aborted)
  }
  const judging = { view, keys, names, clock, onUse: countUses(metrics) }
  await setIssuerPublic(view, options.serviceAccountIssuerPublic, signal)
  return {
    issueToken,
    tokens: [legacyServiceAccountTokens(judging), serviceAccountTokens(judging)],
    apiAudiences: () => names.apiAudiences,
    subresources: [
      { entry: tokenSubresource, handle: tokenRequestHandler({ bodies, issue: issueToken }) },
    ],
    routes: [...documents.routes, ...signingKeyRoutes({ keeper, readBody: bodies.read })],
    anonymousPaths: options.serviceAccountIssuerPublic ? issuerPaths : [],
    onListening: async () => {
      const { url } = context.location()
      const kept = await keptIssuer(view, startOf(options, url), signal)
      names.settle(kept.issuer)
      warnOfDropped(kept, names, log)
      documents.show(factsOf(names.issuers, url, options, log))
    },
  }
}

const startOf = (options: ServerOptions, url: string): IssuerStart => ({
  firstIssuer: url,
  given: options.serviceAccountIssuer,
})

/** Whoever changes the issuer ends all tokens, and seldom means to. */
function warnOfDropped({ dropped }: KeptIssuer, { issuers }: IssuerNames, log: Logger): void {
  if (dropped === undefined) return
  log.warn(
    { issuer: issuers[0], dropped },
    `the issuer has changed, and tokens of the one before are refused from now on; to accept them until they have ended, start with --service-account-issuer ${issuers[0]} --service-account-issuer ${dropped}`,
  )
}

async function openKeys({ options, sealed, clock, log, pki, signal }: FeatureContext): Promise<{
  readonly keys: IssuerKeys
  readonly noteToken: (kid: string, untilMs: number) => Promise<void>
  /** The keys are in a ring of the cluster, which can be rotated. */
  readonly isRing: boolean
}> {
  const { serviceAccountSigningKeyFile: signingKeyFile, serviceAccountKeyFile: keyFiles } = options
  if (signingKeyFile !== undefined) {
    const keys = await openStaticKeys({ signingKeyFile, keyFiles })
    return { keys, noteToken: async () => {}, isRing: false }
  }
  const firstKey = async () => pki.serviceAccount.key
  const rotationPeriodMs = options.serviceAccountKeyRotationPeriod
  const parts = { values: sealed, clock, log, signal, firstKey, rotationPeriodMs }
  const keys = await StoredKeys.open(parts)
  return { keys, noteToken: (kid, untilMs) => keys.noteToken(kid, untilMs), isRing: true }
}

/** Counts the uses of tokens under Kubernetes' names. */
function countUses(metrics: MetricsRegistry): (use: TokenUse) => void {
  const counter = (use: TokenUse, what: string) =>
    metrics
      .counter(
        `serviceaccount_${use}_tokens_total`,
        `Cumulative ${what} service account tokens used`,
      )
      .with()
  const counters = {
    valid: counter('valid', 'valid projected'),
    stale: counter('stale', 'stale projected'),
    legacy: counter('legacy', 'legacy'),
  }
  return (use) => counters[use].inc()
}

/** Names that are known only once the server knows its own address. */
class LateNames implements IssuerNames {
  readonly #options: ServerOptions
  #kept: string | undefined

  constructor(options: ServerOptions, kept: string | undefined) {
    this.#options = options
    this.#kept = kept || undefined
  }

  settle(kept: string): void {
    this.#kept = kept
  }

  requireSettled(): void {
    if (this.issuers[0] === '')
      throw new ApiError('ServiceUnavailable', 'the server is starting and has no issuer yet')
  }

  get issuers(): [string, ...string[]] {
    const [first = this.#kept, ...more] = this.#options.serviceAccountIssuer
    // Until then nobody has a token, so none is ours.
    return first === undefined ? ['', ...more] : [first, ...more]
  }

  get apiAudiences(): readonly string[] {
    const { apiAudiences } = this.#options
    return apiAudiences.length > 0 ? apiAudiences : this.issuers
  }
}

/** What outsiders are told of each issuer: the first one under any name of the server, the others under their own. */
function factsOf(
  [first, ...others]: readonly [string, ...string[]],
  url: string,
  options: ServerOptions,
  log: Logger,
): IssuerFacts[] {
  if (!isDiscoverable(first, log)) return []
  const facts = (issuer: string, server: string): IssuerFacts => ({
    issuer,
    jwksUri: options.serviceAccountJwksUri ?? `${server}${jwksPath}`,
    hasPlaceholders: options.serviceAccountIssuerPlaceholders,
  })
  warnOfKeysElsewhere(facts(first, url), options, log)
  const { host } = new URL(first)
  const further = others.filter((issuer) => problemOfDiscovery(issuer) === undefined)
  const elsewhere = further.filter(
    (issuer) => new URL(issuer).pathname === '/' && new URL(issuer).host !== host,
  )
  return [facts(first, url), ...elsewhere.map((issuer) => facts(issuer, issuer.replace(/\/$/, '')))]
}

/** The usual mistake: a name for outsiders, and keys at an address that only this machine knows. */
function warnOfKeysElsewhere(
  { issuer, jwksUri }: IssuerFacts,
  { serviceAccountJwksUri }: ServerOptions,
  log: Logger,
): void {
  if (serviceAccountJwksUri !== undefined || new URL(issuer).hostname === new URL(jwksUri).hostname)
    return
  log.warn(
    { issuer, jwksUri },
    'the discovery document leads from the issuer to the key set at this server; if outsiders cannot reach that, give --service-account-jwks-uri',
  )
}

function isDiscoverable(issuer: string, log: Logger): boolean {
  const problem = problemOfDiscovery(issuer)
  if (issuer.endsWith('/'))
    log.warn({ issuer }, 'the issuer ends in a slash, which some relying parties cannot handle')
  if (problem === undefined) return true
  log.warn(
    { issuer, problem },
    'outsiders cannot discover this issuer; its documents are not served',
  )
  return false
}
