import {
  anonymous,
  type BearerTokens,
  bearerTokens,
  clientCertificate,
  completeIdentity,
  defaultAnonymousPaths,
  firstOf,
  forApiAudiences,
  openTokenFile,
  type RememberingVerifier,
  type Revocations,
  requestHeader,
  type TokenFile,
} from '../../authn/index.ts'
import {
  type Authentication,
  type Authenticator,
  type Clock,
  CommandFailed,
  type Logger,
  readGivenFile,
} from '../../core/index.ts'
import { watchFiles } from '../../pki/index.ts'
import {
  ClientTrust,
  certificateVerifier,
  openTrustBundle,
  type TrustBundle,
} from '../client-trust.ts'
import type { OpenFeatures } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'

/** What the authenticators work with. */
export interface IdentityDeps {
  readonly options: ServerOptions
  readonly clientCa: TrustBundle
  readonly tokenFile: TokenFile | undefined
  readonly features: Pick<OpenFeatures, 'tokens' | 'issuer' | 'anonymousPaths'>
  readonly revocations: Revocations
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Identities of requests and of tokens. */
export interface Identity {
  readonly authenticator: Authenticator
  readonly clientTrust: ClientTrust
  /** Of client certificates of users. */
  readonly certificates: RememberingVerifier
  /** The identity that a token proves, for TokenReview; `undefined` if it is unknown or not for these audiences. */
  readonly authenticateToken: (
    token: string,
    audiences: readonly string[],
    signal: AbortSignal,
  ) => Promise<Authentication | undefined>
}

/** The authenticators, in this order: a credential that is present decides, also when it is wrong. */
const authenticators = (deps: {
  readonly frontProxy: readonly Authenticator[]
  readonly certificates: RememberingVerifier
  readonly bearer: Authenticator
  readonly anonymous: readonly Authenticator[]
}): readonly Authenticator[] => [
  ...deps.frontProxy, //                          identity headers of a front proxy with a certificate of its CA
  clientCertificate(deps.certificates.verify), // certificate of the connection
  deps.bearer, //                                 token of the token file, then of the features in their order
  ...deps.anonymous, //                           no credential, on a few paths
]

/** Opens everything by which requests and tokens are authenticated. */
export async function openIdentity(deps: IdentityDeps): Promise<Identity> {
  const { options, clientCa, clock, revocations, features } = deps
  const frontProxyCa = await openFrontProxyCa(deps)
  const certificates = certificateVerifier(clientCa, clock)
  const bearer = bearerOf(deps)
  const paths = [...defaultAnonymousPaths, ...features.anonymousPaths]
  const chain = authenticators({
    frontProxy: frontProxyCa.map((bundle) => frontProxy(bundle, options, clock)),
    certificates,
    bearer,
    anonymous: options.anonymousAuth ? [anonymous({ paths })] : [],
  })
  return {
    authenticator: firstOf(chain),
    clientTrust: new ClientTrust([clientCa, ...frontProxyCa], clock),
    certificates,
    authenticateToken: async (token, audiences, signal) => {
      const found = await bearer.authenticateToken(token, signal, audiences)
      if (!found) return undefined
      // A credential that is rejected here must not be confirmed to others.
      revocations.check(found)
      return completeIdentity(found)
    },
  }
}

function bearerOf({ tokenFile, features }: IdentityDeps): BearerTokens {
  const apiAudiences = (): readonly string[] => features.issuer?.apiAudiences ?? []
  return bearerTokens([
    ...(tokenFile ? [forApiAudiences(tokenFile, apiAudiences)] : []),
    ...features.tokens.map(({ authenticator, audiences }) =>
      audiences === 'api' ? forApiAudiences(authenticator, apiAudiences) : authenticator,
    ),
  ])
}

async function openFrontProxyCa(deps: IdentityDeps): Promise<TrustBundle[]> {
  const { requestheaderClientCaFile: path } = deps.options
  return path === undefined ? [] : [await openTrustBundle(path, deps)]
}

const frontProxy = (bundle: TrustBundle, options: ServerOptions, clock: Clock): Authenticator =>
  requestHeader({
    verify: certificateVerifier(bundle, clock).verify,
    allowedNames: options.requestheaderAllowedNames,
    headers: {
      username: options.requestheaderUsernameHeaders,
      uid: options.requestheaderUidHeaders,
      group: options.requestheaderGroupHeaders,
      extraPrefix: options.requestheaderExtraHeadersPrefix,
    },
  })

/** Opens `--token-auth-file`, if it is given, and reloads it when it changes. */
export async function openStaticTokens({
  options,
  log,
  signal,
}: Pick<IdentityDeps, 'options' | 'log' | 'signal'>): Promise<TokenFile | undefined> {
  const path = options.tokenAuthFile
  if (path === undefined) return undefined
  return openTokenFile({
    path,
    read: () =>
      readGivenFile(
        path,
        (why, cause) =>
          new CommandFailed('TOKEN_FILE_UNREADABLE', `cannot read ${path}: ${why}`, { cause }),
      ),
    watch: (onChange) => {
      const closed = new AbortController()
      const until = AbortSignal.any([signal, closed.signal])
      watchFiles([path], onChange, { log, signal: until }).catch((err: unknown) =>
        log.warn({ err, path }, 'cannot watch the token file'),
      )
      return () => closed.abort()
    },
    log,
  })
}
