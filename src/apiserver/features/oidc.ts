import { forApiAudiences } from '../../authn/index.ts'
import { CommandFailed, type Logger, readGivenFile, WrongUsage } from '../../core/index.ts'
import { oidcUsers } from '../../issuer/oidc-users/index.ts'
import { PemInvalid, parseCertificates } from '../../pki/index.ts'
import type { Feature } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'

/** Users of an outside OIDC provider. It need not be up when the server starts. */
export const oidcFeature: Feature = async ({ options, clock, log, apiAudiences }) => {
  const problems = problemsOf(options)
  if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
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
  return { tokens: [forApiAudiences(users, apiAudiences)] }
}

/** Without prefixes the provider decides who is in `system:masters`, as with a kube-apiserver. */
function warnOfReservedNames(options: ServerOptions, log: Logger): void {
  const { oidcUsernamePrefix, oidcUsernameClaim, oidcGroupsClaim, oidcGroupsPrefix } = options
  const isPlainName =
    oidcUsernamePrefix === '-' || (oidcUsernameClaim === 'email' && !oidcUsernamePrefix)
  const fields = { issuer: options.oidcIssuerUrl }
  if (isPlainName)
    log.warn(fields, 'users of the provider have no prefix: it can name users of the system')
  if (oidcGroupsClaim && !oidcGroupsPrefix)
    log.warn(fields, 'groups of the provider have no prefix: it can name groups of the system')
}

function problemsOf(options: ServerOptions): string[] {
  const { oidcIssuerUrl: issuer, oidcClientId: clientId } = options
  const others = [
    options.oidcUsernamePrefix,
    options.oidcGroupsClaim,
    options.oidcGroupsPrefix,
    options.oidcCaFile,
    ...options.oidcRequiredClaim,
  ]
  const isHalf = (issuer === undefined) !== (clientId === undefined)
  const isLonely = issuer === undefined && others.some((value) => value !== undefined)
  const names = options.oidcRequiredClaim.map((pair) => pair.split('=')[0])
  return [
    ...(isHalf || isLonely ? ['--oidc-issuer-url and --oidc-client-id only go together'] : []),
    ...(clientId === '' ? ['--oidc-client-id must not be empty'] : []),
    ...(issuer !== undefined && /[?#@]/.test(issuer)
      ? ['--oidc-issuer-url must have no user, query or fragment']
      : []),
    ...(issuer !== undefined && options.serviceAccountIssuer.includes(issuer)
      ? ['--oidc-issuer-url must not be an issuer of service accounts']
      : []),
    ...(new Set(names).size < names.length ? ['--oidc-required-claim names a claim twice'] : []),
  ]
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
    const message = `${path} (--oidc-ca-file) is no CA file: ${cause.message}`
    throw new CommandFailed('OIDC_CA_UNREADABLE', message, { cause })
  }
}
