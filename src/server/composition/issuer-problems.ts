import { problemOfIssuer } from '../../issuer/index.ts'
import type { ServerOptions } from '../options/index.ts'

const hourMs = 3_600_000
const longestMs = 2 ** 32 * 1000

/** What is wrong with the options of the issuer, each as one sentence. */
export const problemsOfIssuerOptions = (options: ServerOptions): string[] => [
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
