import { Secret } from '../../../core/index.ts'
import { CredentialError } from '../../credential-error.ts'
import { requestJson } from './json-request.ts'
import { isProtected, type OidcConfig } from './oidc-config.ts'

/** New tokens for an old refresh token. */
export interface RefreshedTokens {
  readonly idToken: Secret
  /** The one to use next time, which may be the old one. */
  readonly refreshToken: Secret
}

/** Asks the issuer for a new id-token. */
export async function refreshTokens(
  config: OidcConfig,
  refreshToken: Secret,
  signal: AbortSignal,
): Promise<RefreshedTokens> {
  const ca = await config.ca?.()
  const trust = ca === undefined ? { signal } : { signal, ca }
  const endpoint = await discover(config.issuer, trust)
  const { status, body } = await requestJson({
    url: endpoint.url,
    ...grant(config, refreshToken, endpoint.secretInForm),
    ...trust,
  })
  if (status !== 200) throw refused(config.issuer, status, body['error'])
  const { id_token: idToken, refresh_token: next } = body
  if (typeof idToken !== 'string' || idToken === '') {
    throw new CredentialError('PROVIDER', `${config.issuer} answered without an id_token`, {
      hint: 'the client must be allowed the scope openid',
    })
  }
  return {
    idToken: new Secret(idToken),
    refreshToken: typeof next === 'string' && next !== '' ? new Secret(next) : refreshToken,
  }
}

interface Endpoint {
  readonly url: string
  /** Whether the client's secret goes into the form; into a header otherwise. */
  readonly secretInForm: boolean
}

async function discover(
  issuer: string,
  trust: { readonly signal: AbortSignal; readonly ca?: string },
): Promise<Endpoint> {
  const url = `${issuer}/.well-known/openid-configuration`
  const { status, body } = await requestJson({ url, ...trust })
  const { issuer: claimed, token_endpoint: endpoint } = body
  const fail = (why: string): CredentialError =>
    new CredentialError('PROVIDER', `the document ${url} ${why}`, {
      hint: 'check idp-issuer-url',
    })
  if (status !== 200) throw fail(`was answered with status ${status}`)
  if (typeof claimed !== 'string' || claimed.replace(/\/$/, '') !== issuer) {
    throw fail('is that of another issuer')
  }
  if (typeof endpoint !== 'string' || !isProtected(endpoint)) {
    throw fail('names no token_endpoint with https')
  }
  const methods: unknown = body['token_endpoint_auth_methods_supported']
  const secretInForm = Array.isArray(methods) && !methods.includes('client_secret_basic')
  return { url: endpoint, secretInForm }
}

function grant(
  { clientId, clientSecret }: OidcConfig,
  refreshToken: Secret,
  secretInForm: boolean,
): { form: Record<string, string>; headers?: Record<string, string> } {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken.reveal() }
  if (!clientSecret) return { form: { ...form, client_id: clientId } }
  const secret = clientSecret.reveal()
  if (secretInForm) return { form: { ...form, client_id: clientId, client_secret: secret } }
  const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`
  return { form, headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } }
}

/** The error codes of OAuth are plain words; anything else is not shown. */
function refused(issuer: string, status: number, error: unknown): CredentialError {
  const reason = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : ''
  return new CredentialError(
    'PROVIDER',
    `${issuer} did not refresh the token: status ${status}${reason}`,
    { hint: 'log in again with the tool that made this kubeconfig' },
  )
}
