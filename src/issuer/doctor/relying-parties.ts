import { member } from '../../jose/index.ts'
import {
  commonRequirements,
  fasterThan,
  jsonTypes,
  kidOnEveryKey,
  knownTrust,
  listedAlgorithms,
  maxKeys,
  must,
  noTrailingSlash,
  onlyAlgorithms,
  publicAddress,
  publicTrust,
  type Requirement,
  should,
} from './checks.ts'

const useRsa = 'sign with an RSA key (RS256), which every relying party accepts'

const fromTheInternet = [publicAddress, publicTrust]

const trustBySystem = knownTrust(
  'add the CA to what the program trusts, or use a certificate of a public CA',
)

const noPort: Requirement = must(
  ({ url }) => (url.port === '' ? undefined : `the issuer has the port ${url.port}`),
  'use an issuer without a port, on 443',
)

const noAuthorizationEndpoint: Requirement = must(({ document }) => {
  if (!document) return undefined
  const named = member(document, 'authorization_endpoint')
  return typeof named === 'string' && URL.canParse(named)
    ? undefined
    : 'the document has no authorization_endpoint that is a URL'
}, 'start the server with --service-account-issuer-placeholders')

/** The requirements of each relying party, in addition to the common ones. */
const ownRequirements = {
  aws: [
    ...fromTheInternet,
    noPort,
    kidOnEveryKey,
    maxKeys(100),
    ...onlyAlgorithms(['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512'], useRsa),
    fasterThan(5_000),
    noTrailingSlash,
  ],
  gcp: [
    ...fromTheInternet.map((requirement) => ({
      ...requirement,
      todo: `${requirement.todo}; or upload the key set (gcloud: --jwk-json-path), again after each rotation`,
    })),
    kidOnEveryKey,
    must(
      ({ keys }) => (keys.some(({ hasAlg }) => !hasAlg) ? 'a key has no alg' : undefined),
      'publish keys with their alg, as Kubernetes and Sallyport do',
    ),
    ...onlyAlgorithms(['RS256', 'ES256'], useRsa),
  ],
  azure: [...fromTheInternet, kidOnEveryKey, ...onlyAlgorithms(['RS256'], useRsa), noTrailingSlash],
  vault: [
    ...knownTrust('give Vault the CA: oidc_discovery_ca_pem (or jwks_ca_pem)'),
    listedAlgorithms,
    noTrailingSlash,
  ],
  oci: [...fromTheInternet, maxKeys(10)],
  confluent: [
    ...fromTheInternet,
    should(({ jwks }) => {
      const [, seconds] = /max-age=(\d+)/.exec(jwks?.cacheControl ?? '') ?? []
      const isUsual = Number(seconds) >= 300 && Number(seconds) <= 604_800
      return !jwks || isUsual ? undefined : 'the key set has no max-age from 300 to 604800'
    }, 'send Cache-Control: public, max-age=3600; without it keys are kept for a day'),
  ],
  'kube-apiserver': [
    ...knownTrust('give it the CA: --oidc-ca-file'),
    ...onlyAlgorithms(['RS256'], 'allow the others with --oidc-signing-algs, or sign with RSA'),
  ],
  istio: [
    ...knownTrust('let istiod trust the CA, or put the keys into the RequestAuthentication (jwks)'),
    fasterThan(5_000),
    must(
      ({ issuer }) =>
        issuer.endsWith('/')
          ? 'the issuer ends in a slash, and istiod requests a path with //'
          : undefined,
      'remove the slash from --service-account-issuer, or set jwksUri in the RequestAuthentication',
    ),
  ],
  'go-oidc': [...trustBySystem, listedAlgorithms],
  jose: [
    ...trustBySystem,
    kidOnEveryKey,
    must(({ keys }) => {
      const kids = keys.map(({ kid, alg }) => `${alg} ${kid}`)
      return new Set(kids).size < kids.length ? 'two keys have the same kid and alg' : undefined
    }, 'publish every key once, under an id of its own'),
  ],
  'openid-client': [...trustBySystem, jsonTypes],
  pyjwt: [...trustBySystem, kidOnEveryKey],
  authlib: [
    ...trustBySystem,
    should(
      ({ document }) =>
        document && member(document, 'token_endpoint') === undefined
          ? 'metadata.validate() rejects the document: it has no token_endpoint'
          : undefined,
      'do not call validate(), or start the server with --service-account-issuer-placeholders',
    ),
  ],
  nimbus: [
    ...trustBySystem,
    fasterThan(500),
    must(
      ({ jwks }) =>
        (jwks?.body.length ?? 0) > 50 * 1024
          ? `the key set has ${jwks?.body.length} bytes, and 51200 are read`
          : undefined,
      'publish fewer keys: drop retired ones',
    ),
  ],
  spring: [...trustBySystem, noTrailingSlash],
  'openidconnect-rs': [...trustBySystem, noAuthorizationEndpoint, jsonTypes],
} as const satisfies Readonly<Record<string, readonly Requirement[]>>

/** A relying party whose requirements are known. */
export type RelyingPartyName = keyof typeof ownRequirements

/** All relying parties, in the order of the report. */
export const relyingPartyNames = Object.keys(ownRequirements) as readonly RelyingPartyName[]

/** All requirements of a relying party. */
export const requirementsOf = (name: RelyingPartyName): readonly Requirement[] => [
  ...commonRequirements,
  ...ownRequirements[name],
]
