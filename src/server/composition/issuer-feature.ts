import { tokenRequestHandler, tokenSubresource } from '../../api/index.ts'
import { type Logger, WrongUsage } from '../../core/index.ts'
import {
  createTokenIssuer,
  type IssuerKeys,
  type IssuerNames,
  jwksPath,
  keptIssuer,
  openStaticKeys,
  problemOfDiscovery,
  problemOfIssuer,
  StoredKeys,
  serviceAccountTokens,
} from '../../issuer/index.ts'
import type { Feature, FeatureContext } from '../feature.ts'
import type { ServerOptions } from '../options/index.ts'
import { IssuerDocumentServer, issuerPaths } from '../paths/issuer-documents.ts'

/** Tokens of service accounts: issued, accepted, and verifiable by anyone outside. */
export const issuerFeature: Feature = async (context) => {
  const { options, view, clock, log, readBody, signal } = context
  const problems = problemsOfIssuerOptions(options)
  if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
  const { keys, noteToken } = await openKeys(context)
  const names = new LateNames(options)
  const documents = new IssuerDocumentServer(keys)
  const longestMs = options.serviceAccountMaxTokenExpiration
  const issueToken = createTokenIssuer({
    view,
    keys,
    names,
    clock,
    ...(longestMs > 0 && { longestSeconds: longestMs / 1000 }),
    extendsExpiration: options.serviceAccountExtendTokenExpiration,
    noteToken,
  })
  return {
    issueToken,
    tokens: [serviceAccountTokens({ view, keys, names, clock })],
    subresources: [
      { entry: tokenSubresource, handle: tokenRequestHandler({ readBody, issue: issueToken }) },
    ],
    routes: documents.routes,
    anonymousPaths: options.serviceAccountIssuerPublic ? issuerPaths : [],
    onListening: async () => {
      const { url } = context.location()
      names.settle(await keptIssuer(view, () => url, signal))
      const [issuer] = names.issuers
      const jwksUri = options.serviceAccountJwksUri ?? `${url}${jwksPath}`
      if (isDiscoverable(issuer, log)) {
        documents.show({
          issuer,
          jwksUri,
          hasPlaceholders: options.serviceAccountIssuerPlaceholders,
        })
      }
    },
  }
}

async function openKeys({ options, view, clock, log, pki, signal }: FeatureContext): Promise<{
  readonly keys: IssuerKeys
  readonly noteToken: (kid: string, untilMs: number) => Promise<void>
}> {
  const { serviceAccountSigningKeyFile: signingKeyFile, serviceAccountKeyFile: keyFiles } = options
  if (signingKeyFile !== undefined) {
    return { keys: await openStaticKeys({ signingKeyFile, keyFiles }), noteToken: async () => {} }
  }
  const firstKey = async () => pki.serviceAccount.key
  const keys = await StoredKeys.open({ view, clock, log, signal, firstKey })
  return { keys, noteToken: (kid, untilMs) => keys.noteToken(kid, untilMs) }
}

/** Names that are known only once the server knows its own address. */
class LateNames implements IssuerNames {
  readonly #options: ServerOptions
  #kept: string | undefined

  constructor(options: ServerOptions) {
    this.#options = options
  }

  settle(kept: string): void {
    this.#kept = kept
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

function isDiscoverable(issuer: string, log: Logger): boolean {
  const problem = problemOfDiscovery(issuer)
  if (problem === undefined) return true
  log.warn(
    { issuer, problem },
    'outsiders cannot discover this issuer; its documents are not served',
  )
  return false
}

function problemsOfIssuerOptions(options: ServerOptions): string[] {
  const {
    serviceAccountIssuer: issuers,
    serviceAccountJwksUri: jwksUri,
    serviceAccountMaxTokenExpiration: longestMs,
  } = options
  const hasKeyFiles = options.serviceAccountKeyFile.length > 0
  return [
    ...issuers.flatMap((issuer) => {
      const problem = problemOfIssuer(issuer)
      return problem === undefined ? [] : [`--service-account-issuer ${problem}`]
    }),
    ...(new Set(issuers).size < issuers.length
      ? ['--service-account-issuer names the same issuer twice']
      : []),
    ...(jwksUri !== undefined && !jwksUri.startsWith('https://')
      ? ['--service-account-jwks-uri must be an https URL']
      : []),
    ...(hasKeyFiles && options.serviceAccountSigningKeyFile === undefined
      ? ['--service-account-key-file needs --service-account-signing-key-file']
      : []),
    ...(longestMs > 0 && longestMs < 3_600_000
      ? ['--service-account-max-token-expiration must be an hour or more, or 0']
      : []),
  ]
}
