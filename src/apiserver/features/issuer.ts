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
  readIssuerRecord,
  StoredKeys,
  serviceAccountTokens,
  type TokenUse,
} from '../../issuer/index.ts'
import type { Feature, FeatureParts, OpenContext } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'
import { IssuerDocumentServer, issuerPaths } from '../routes/issuer-documents.ts'
import { signingKeyRoutes } from '../routes/signing-keys.ts'

const roleName = 'system:service-account-issuer-discovery'
const bindingName = 'sallyport:service-account-issuer-public'
const rbac = 'rbac.authorization.k8s.io'

const allUsers = [wellKnown.authenticated, wellKnown.unauthenticated].map((name) => ({
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
  subjects: allUsers,
}

/** Permits all users, anonymous ones too, to read the issuer's documents, or revokes that; other bindings are kept. */
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
      (present) => (present ? { ...present, subjects: allUsers } : binding),
      signal,
    )
    return
  }
  if (!(await view.get(kind, { name: bindingName }, signal))) return
  await view.write('delete', binding, {}, signal).catch((error: unknown) => {
    if (!hasReason(error, 'NotFound')) throw error
  })
}

/** Tokens of service accounts: issued, accepted, and verifiable by relying parties. */
export const issuerFeature: Feature = { name: 'issuer', open: openIssuer }

async function openIssuer(context: OpenContext): Promise<FeatureParts> {
  const { options, view, clock, log, metrics, bodies, sealed, signal } = context
  const { keys, noteToken, isRing } = await openKeys(context)
  const keeper = isRing ? { values: sealed, clock } : undefined
  // From the second start on the issuer is known before the first request.
  const names = new ServerIssuerNames(options, (await readIssuerRecord(view, signal))?.issuer)
  const documents = new IssuerDocumentServer(keys)
  const maxLifetimeMs = options.serviceAccountMaxTokenExpiration
  const createToken = createTokenIssuer({
    view,
    authorizer: context.authorizer,
    keys,
    names,
    clock,
    ...(maxLifetimeMs > 0 && { maxLifetimeSeconds: maxLifetimeMs / 1000 }),
    extendsExpiration: options.serviceAccountExtendTokenExpiration,
    noteToken,
  })
  const issue: IssueToken = async (call, aborted) => {
    names.requireKnown()
    return createToken(call, aborted)
  }
  const tokens = { view, keys, names, clock, onUse: countUses(metrics) }
  return {
    issuer: {
      issue,
      get apiAudiences() {
        return names.apiAudiences
      },
    },
    tokens: [
      { authenticator: legacyServiceAccountTokens(tokens), audiences: 'own' },
      { authenticator: serviceAccountTokens(tokens), audiences: 'own' },
    ],
    subresources: [{ entry: tokenSubresource, handle: tokenRequestHandler({ bodies, issue }) }],
    routes: [...documents.routes, ...signingKeyRoutes({ keeper, readBody: bodies.read })],
    anonymousPaths: options.serviceAccountIssuerPublic ? issuerPaths : [],
    start: async ({ location: { url } }) => {
      // First: the documents are not served before their readers are decided.
      await setIssuerPublic(view, options.serviceAccountIssuerPublic, signal)
      const kept = await keptIssuer(view, startOf(options, url), signal)
      names.set(kept.issuer)
      warnOfDropped(kept, names, log)
      documents.serve(factsOf(names.issuers, url, options, log))
    },
  }
}

const startOf = (options: ServerOptions, url: string): IssuerStart => ({
  firstIssuer: url,
  given: options.serviceAccountIssuer,
})

/** A change of the issuer invalidates all tokens, which is seldom intended. */
function warnOfDropped({ dropped }: KeptIssuer, { issuers }: IssuerNames, log: Logger): void {
  if (dropped === undefined) return
  log.warn(
    { issuer: issuers[0], dropped },
    `the issuer has changed, and tokens of the previous one are rejected from now on; to accept them until they expire, start with --service-account-issuer ${issuers[0]} --service-account-issuer ${dropped}`,
  )
}

async function openKeys({ options, sealed, clock, log, pki, signal }: OpenContext): Promise<{
  readonly keys: IssuerKeys
  readonly noteToken: (kid: string, untilMs: number) => Promise<void>
  /** The keys are in the cluster's key ring, which can be rotated. */
  readonly isRing: boolean
}> {
  const { serviceAccountSigningKeyFile: signingKeyFile, serviceAccountKeyFile: keyFiles } = options
  if (signingKeyFile !== undefined) {
    const keys = await openStaticKeys({ signingKeyFile, keyFiles })
    return { keys, noteToken: async () => {}, isRing: false }
  }
  const firstKey = async () => pki.serviceAccount.key
  const rotationPeriodMs = options.serviceAccountKeyRotationPeriod
  const deps = { values: sealed, clock, log, signal, firstKey, rotationPeriodMs }
  const keys = await StoredKeys.open(deps)
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

/** Issuer and audiences; at the first start they are known once the port is open. */
class ServerIssuerNames implements IssuerNames {
  readonly #options: ServerOptions
  #kept: string | undefined

  constructor(options: ServerOptions, kept: string | undefined) {
    this.#options = options
    this.#kept = kept || undefined
  }

  set(kept: string): void {
    this.#kept = kept
  }

  requireKnown(): void {
    if (this.issuers[0] === '')
      throw new ApiError('ServiceUnavailable', 'the server is starting and has no issuer yet')
  }

  get issuers(): [string, ...string[]] {
    const [first = this.#kept, ...more] = this.#options.serviceAccountIssuer
    // Until then there are no tokens, so none is accepted.
    return first === undefined ? ['', ...more] : [first, ...more]
  }

  get apiAudiences(): readonly string[] {
    const { apiAudiences } = this.#options
    return apiAudiences.length > 0 ? apiAudiences : this.issuers
  }
}

/** The documents of each issuer: of the first one under any name of the server, of the others under their own. */
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

/** A frequent mistake: a public issuer, and keys at an address that only this machine reaches. */
function warnOfKeysElsewhere(
  { issuer, jwksUri }: IssuerFacts,
  { serviceAccountJwksUri }: ServerOptions,
  log: Logger,
): void {
  if (serviceAccountJwksUri !== undefined || new URL(issuer).hostname === new URL(jwksUri).hostname)
    return
  log.warn(
    { issuer, jwksUri },
    'the discovery document refers to the key set at this server; if relying parties cannot reach that, set --service-account-jwks-uri',
  )
}

function isDiscoverable(issuer: string, log: Logger): boolean {
  const problem = problemOfDiscovery(issuer)
  if (issuer.endsWith('/'))
    log.warn({ issuer }, 'the issuer ends with a slash, which some relying parties do not support')
  if (problem === undefined) return true
  log.warn(
    { issuer, problem },
    'relying parties cannot discover this issuer; its documents are not served',
  )
  return false
}
