import { foldHeaderName } from './raw-headers.ts'

/** By what Kubernetes and others believe in a user; whole names, or beginnings that end in a dash. */
const names: readonly string[] = [
  'authorization',
  'authentication',
  'impersonate-',
  'x-remote-',
  'x-authenticated-',
  'x-authorized-',
  'x-auth-request-',
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-groups',
  'x-forwarded-preferred-username',
  'x-forwarded-access-token',
  'x-forwarded-id-token',
  'x-forwarded-client-cert',
  'remote-user',
  'remote-groups',
  'remote-name',
  'remote-email',
  'x-webauth-',
  'x-authentik-',
  'x-pomerium-',
  'x-teleport-',
  'teleport-jwt-assertion',
  'gap-signature',
  'x-goog-',
  'cf-access-',
  'x-amzn-oidc-',
  'x-ms-client-principal',
  'x-ms-client-principal-',
]
const whole = new Set(names.filter((name) => !name.endsWith('-')))
const beginnings = names.filter((name) => name.endsWith('-'))

/** Whether a header claims an identity to somebody behind us, in any spelling. */
export function isIdentityHeader(name: string): boolean {
  const folded = foldHeaderName(name)
  return whole.has(folded) || beginnings.some((each) => folded.startsWith(each))
}
