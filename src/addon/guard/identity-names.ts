import { foldHeaderName } from '../../http/index.ts'

/** By what somebody behind us believes in a user; whole names, or beginnings that end in a dash. */
const identityNames: readonly string[] = [
  'authorization',
  'authentication',
  'x-authorization',
  'x-authenticated-',
  'x-authorized-',
  'impersonate-',
  'x-remote-',
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-groups',
  'x-forwarded-preferred-username',
  'x-forwarded-access-token',
  'x-forwarded-client-cert',
  'x-auth-request-',
  'remote-user',
  'remote-groups',
  'remote-name',
  'remote-email',
  'x-webauth-',
  'x-authentik-',
  'x-pomerium-',
  'x-goog-',
  'cf-access-',
  'x-amzn-oidc-',
  'x-ms-client-principal',
  'x-ms-client-principal-',
  'teleport-jwt-assertion',
]

/** Tells whether a header claims an identity, in any spelling; `emitted` are the names under which we state ours. */
export function identityNameTest(emitted: readonly string[]): (name: string) => boolean {
  const all = [...identityNames, ...emitted.map(foldHeaderName)]
  const whole = new Set(all.filter((name) => !name.endsWith('-')))
  const beginnings = all.filter((name) => name.endsWith('-'))
  return (name) => {
    const folded = foldHeaderName(name)
    return whole.has(folded) || beginnings.some((beginning) => folded.startsWith(beginning))
  }
}
