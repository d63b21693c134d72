import { CommandFailed, type Logger, readGivenFile } from '../../core/index.ts'
import { oidcUsers } from '../../issuer/oidc-users/index.ts'
import { PemInvalid, parseCertificates } from '../../pki/index.ts'
import type { Feature, FeatureParts, OpenContext } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'

/** Users of an external OIDC provider, which need not be reachable when the server starts. */
export const oidcFeature: Feature = { name: 'oidc', open: openOidc }

async function openOidc({ options, clock, log }: OpenContext): Promise<FeatureParts> {
  const { oidcIssuerUrl: issuer, oidcClientId: clientId } = options
  if (issuer === undefined || clientId === undefined) return {}
  warnOfReservedNames(options, log)
  const users = oidcUsers({
    issuer,
    clientId,
    usernameClaim: options.oidcUsernameClaim,
    usernamePrefix: options.oidcUsernamePrefix,
    groupsClaim: options.oidcGroupsClaim,
    groupsPrefix: options.oidcGroupsPrefix,
    requiredClaims: requiredClaimsOf(options),
    algorithms: options.oidcSigningAlgs,
    caPem: await readCa(options.oidcCaFile),
    clock,
    log,
  })
  return { tokens: [{ authenticator: users, audiences: 'api' }] }
}

/** Without prefixes the provider decides which users are in `system:masters`, as with a kube-apiserver. */
function warnOfReservedNames(options: ServerOptions, log: Logger): void {
  const { oidcUsernamePrefix, oidcUsernameClaim, oidcGroupsClaim, oidcGroupsPrefix } = options
  const isPlainName =
    oidcUsernamePrefix === '-' || (oidcUsernameClaim === 'email' && !oidcUsernamePrefix)
  const fields = { issuer: options.oidcIssuerUrl }
  if (isPlainName)
    log.warn(
      fields,
      'users of the OIDC provider have no prefix: it can issue names of system users',
    )
  if (oidcGroupsClaim && !oidcGroupsPrefix)
    log.warn(
      fields,
      'groups of the OIDC provider have no prefix: it can issue names of system groups',
    )
}

function requiredClaimsOf({ oidcRequiredClaim: pairs }: ServerOptions): Map<string, string> {
  return new Map(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  )
}

async function readCa(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const text = await readGivenFile(
    path,
    (why, cause) =>
      new CommandFailed('OIDC_CA_UNREADABLE', `cannot read ${path}: ${why}`, { cause }),
  )
  try {
    parseCertificates(text)
    return text
  } catch (cause) {
    if (!(cause instanceof PemInvalid)) throw cause
    const message = `the CA file ${path} (--oidc-ca-file) is invalid: ${cause.message}`
    throw new CommandFailed('OIDC_CA_UNREADABLE', message, { cause })
  }
}
