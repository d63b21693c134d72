import type { Secret } from '../../../core/index.ts'
import type { AuthProviderConfig } from '../../../kubeconfig/index.ts'
import { CredentialError } from '../../credential-error.ts'
import { readCredentialFile } from '../read-credential-file.ts'

/** The tokens that an identity provider has given. */
export interface OidcTokens {
  readonly idToken?: Secret
  readonly refreshToken?: Secret
}

/** What `auth-provider: oidc` says. */
export interface OidcConfig extends OidcTokens {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: Secret
  /** The authority of the issuer's certificate, as text or as a file. */
  readonly ca?: () => Promise<string>
}

/** The tokens in the settings of an `auth-provider`. */
export function tokensIn(config: AuthProviderConfig['config'] = {}): OidcTokens {
  const { 'id-token': idToken, 'refresh-token': refreshToken } = config
  return {
    ...(idToken?.reveal() && { idToken }),
    ...(refreshToken?.reveal() && { refreshToken }),
  }
}

/** Reads the settings of `auth-provider: oidc`. */
export function oidcConfig({ config = {} }: AuthProviderConfig): OidcConfig {
  const setting = (name: string): string | undefined => config[name]?.reveal() || undefined
  const issuer = required('idp-issuer-url', setting('idp-issuer-url'))
  const clientId = required('client-id', setting('client-id'))
  if (!isProtected(issuer)) {
    throw new CredentialError('CONFIG_INVALID', 'auth-provider oidc: idp-issuer-url must be https')
  }
  const ca = authority(setting)
  return {
    issuer: issuer.replace(/\/$/, ''),
    clientId,
    ...(setting('client-secret') !== undefined &&
      config['client-secret'] && { clientSecret: config['client-secret'] }),
    ...(ca && { ca }),
    ...tokensIn(config),
  }
}

/** Whether secrets may go to this URL: over TLS, or not beyond this machine. */
export function isProtected(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  if (protocol === 'https:') return true
  return protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
}

function required(name: string, value: string | undefined): string {
  if (value !== undefined) return value
  throw new CredentialError('CONFIG_INVALID', `auth-provider oidc has no ${name}`, {
    hint: `add ${name} to its config`,
  })
}

function authority(
  setting: (name: string) => string | undefined,
): (() => Promise<string>) | undefined {
  const data = setting('idp-certificate-authority-data')
  if (data !== undefined) return async () => Buffer.from(data, 'base64').toString('utf8')
  const path = setting('idp-certificate-authority')
  return path === undefined ? undefined : () => readCredentialFile(path)
}
