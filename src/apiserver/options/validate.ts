import { isIP } from 'node:net'
import { problemOfServiceRange } from '../../api/index.ts'
import { problemOfIssuer } from '../../issuer/index.ts'
import { maxTokenLifetimeMs, minKeyRotationMs, minTokenLifetimeMs } from '../limits.ts'
import type { ServerOptions } from './options.ts'

/** A rule on the options: a problem if it is broken. */
type Rule = readonly [isBroken: boolean, problem: string]

const problemsOf = (...rules: readonly Rule[]): string[] =>
  rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []))

/** What is wrong with options that are valid each by itself, one line per problem. */
export const problemsOfOptions = (options: ServerOptions): string[] => [
  ...problemsOfServing(options),
  ...problemsOfIssuer(options),
  ...problemsOfOidc(options),
]

function problemsOfServing(options: ServerOptions): string[] {
  const { tlsCertFile, tlsPrivateKeyFile, serviceClusterIpRange: ranges } = options
  const families = new Set(ranges.map((range) => isIP(range.split('/')[0] ?? '')))
  return [
    ...problemsOf(
      [
        (tlsCertFile === undefined) !== (tlsPrivateKeyFile === undefined),
        '--tls-cert-file and --tls-private-key-file must be given together',
      ],
      [
        options.requestheaderAllowedNames.length > 0 && !options.requestheaderClientCaFile,
        '--requestheader-allowed-names needs --requestheader-client-ca-file',
      ],
      [options.egress === 'tunnel' && !options.tunnel, '--egress tunnel needs --tunnel'],
      [
        ranges.length === 0 || families.size !== ranges.length,
        '--service-cluster-ip-range takes one range, or one of each IP family',
      ],
    ),
    ...ranges.flatMap((range) => problemOfServiceRange(range) ?? []),
  ]
}

function problemsOfIssuer(options: ServerOptions): string[] {
  const { serviceAccountIssuer: issuers, serviceAccountJwksUri: jwksUri } = options
  const { serviceAccountSigningKeyFile: signingKey, serviceAccountKeyFile: keyFiles } = options
  const { serviceAccountMaxTokenExpiration: lifetime, serviceAccountKeyRotationPeriod: period } =
    options
  return [
    ...issuers.flatMap((issuer) => {
      const problem = problemOfIssuer(issuer)
      return problem === undefined ? [] : [`--service-account-issuer ${problem}`]
    }),
    ...problemsOf(
      [
        new Set(issuers).size < issuers.length,
        '--service-account-issuer names the same issuer twice',
      ],
      [
        jwksUri !== undefined && !isHttps(jwksUri),
        '--service-account-jwks-uri must be an https URL',
      ],
      [options.apiAudiences.includes(''), '--api-audiences must not be empty'],
      [
        keyFiles.length > 0 && signingKey === undefined,
        '--service-account-key-file needs --service-account-signing-key-file',
      ],
      [
        signingKey !== undefined && period > 0,
        '--service-account-key-rotation-period needs keys that are kept in the cluster: omit --service-account-signing-key-file',
      ],
      [
        lifetime > 0 && (lifetime < minTokenLifetimeMs || lifetime > maxTokenLifetimeMs),
        '--service-account-max-token-expiration must be from an hour to 2^32 seconds, or 0',
      ],
      [
        period > 0 && period < minKeyRotationMs,
        '--service-account-key-rotation-period must be a day or more, or 0',
      ],
      [
        options.serviceAccountIssuerPublic && !options.anonymousAuth,
        '--service-account-issuer-public needs --anonymous-auth',
      ],
    ),
  ]
}

const isHttps = (url: string): boolean => URL.canParse(url) && new URL(url).protocol === 'https:'

function problemsOfOidc(options: ServerOptions): string[] {
  const { oidcIssuerUrl: issuer, oidcClientId: clientId, oidcRequiredClaim: claims } = options
  const others = [
    options.oidcUsernamePrefix,
    options.oidcGroupsClaim,
    options.oidcGroupsPrefix,
    options.oidcCaFile,
    ...claims,
  ]
  const isIncomplete = (issuer === undefined) !== (clientId === undefined)
  const isWithoutIssuer = issuer === undefined && others.some((value) => value !== undefined)
  const names = claims.map((pair) => pair.split('=')[0])
  return problemsOf(
    [
      isIncomplete || isWithoutIssuer,
      '--oidc-issuer-url and --oidc-client-id must be given together',
    ],
    [clientId === '', '--oidc-client-id must not be empty'],
    [
      issuer !== undefined && /[?#@]/.test(issuer),
      '--oidc-issuer-url must have no user, query or fragment',
    ],
    [
      issuer !== undefined && options.serviceAccountIssuer.includes(issuer),
      '--oidc-issuer-url must not be an issuer of service accounts',
    ],
    [new Set(names).size < names.length, '--oidc-required-claim names a claim twice'],
  )
}
