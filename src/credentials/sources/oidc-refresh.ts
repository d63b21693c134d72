import { type Clock, CommandFailed, isRecord, readFileIfPresent, Secret } from '../../core/index.ts'
import {
  FetchError,
  type FetchedDocument,
  fetchDocument,
  urlProblem,
} from '../../http/fetch/index.ts'
import {
  type AuthProviderConfig,
  type Kubeconfig,
  parseKubeconfig,
  withKubeconfigLock,
  writeKubeconfig,
} from '../../kubeconfig/index.ts'
import { readCredentialFile } from '../credential-file.ts'
import { CredentialError } from '../errors.ts'

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
function tokensIn(config: AuthProviderConfig['config'] = {}): OidcTokens {
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

/** Whether secrets may be sent to this URL: over TLS, or on this machine. */
const isProtected = (text: string): boolean => urlProblem(text, 'loopback') === undefined

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
  const request = grant(config, refreshToken, endpoint.secretInForm)
  const { status, body } = await requestJson(endpoint.url, { ...request, ...trust })
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

interface JsonRequest {
  /** Sent as a POST if present. */
  readonly form?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** PEM; the CAs of Node.js if absent. */
  readonly ca?: string
  readonly signal: AbortSignal
}

const requestTimeoutMs = 30_000
const maxResponseBytes = 1024 * 1024

/** Sends a request to an identity provider; the body is empty unless it is a JSON object. */
async function requestJson(
  url: string,
  { form, headers, ca, signal }: JsonRequest,
): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const formType = { 'content-type': 'application/x-www-form-urlencoded' }
  try {
    const response = await fetchDocument(new URL(url), {
      ...(form && { method: 'POST', body: new URLSearchParams(form).toString() }),
      headers: { ...(form && formType), ...headers },
      ...(ca !== undefined && { tls: { ca } }),
      allowHttp: 'loopback',
      timeoutMs: requestTimeoutMs,
      maxBytes: maxResponseBytes,
      signal,
    })
    return { status: response.status, body: parseObject(response) }
  } catch (cause) {
    if (!(cause instanceof FetchError)) throw cause
    // Not followed: a redirect could send the secrets elsewhere.
    if (cause.code === 'redirected') return { status: cause.status ?? 0, body: {} }
    const { host } = new URL(url)
    const message = `cannot fetch from the identity provider ${host}: ${cause.reason}`
    throw new CredentialError('PROVIDER', message, {
      hint: 'check idp-issuer-url, idp-certificate-authority and the network',
      cause,
    })
  }
}

function parseObject({ body }: FetchedDocument): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString())
    return isRecord(value) ? value : {}
  } catch {
    return {} // the error of the parser would quote the response, which may have tokens in it
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
  const { status, body } = await requestJson(url, trust)
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

const lockFailures: ReadonlySet<string> = new Set(['KUBECONFIG_LOCKED', 'KUBECONFIG_UNLOCKABLE'])

/** Does something while holding the lock of a kubeconfig; one that cannot be had is a failed credential. */
async function withLockFile<T>(
  path: string,
  clock: Clock,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await withKubeconfigLock(path, clock, signal, act)
  } catch (cause) {
    if (!(cause instanceof CommandFailed) || !lockFailures.has(cause.code)) throw cause
    const hint =
      cause.code === 'KUBECONFIG_UNLOCKABLE'
        ? 'new tokens are kept in the kubeconfig, so its directory must be writable'
        : (cause.hint ?? '')
    throw new CredentialError('FILE', cause.message, { hint, cause })
  }
}

/** Keeps the tokens of a user from one process to the next. */
export interface TokenStore {
  /** Lets one process at a time read, refresh and write. */
  exclusively<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T>
  read(): Promise<OidcTokens>
  write(tokens: Required<OidcTokens>): Promise<void>
}

/** Keeps tokens in the kubeconfig that they came from. */
export function kubeconfigTokenStore(path: string, userName: string, clock: Clock): TokenStore {
  const load = async (): Promise<Kubeconfig> =>
    parseKubeconfig((await readFileIfPresent(path)) ?? '', path)
  return {
    exclusively: (signal, act) => withLockFile(path, clock, signal, act),
    read: async () => tokensIn((await load()).users.get(userName)?.authProvider?.config),
    write: async ({ idToken, refreshToken }) => {
      const config = await load()
      const user = config.users.get(userName)
      if (!user?.authProvider) return // somebody has removed it meanwhile
      const settings: Record<string, Secret> = {
        ...user.authProvider.config,
        'id-token': idToken,
        'refresh-token': refreshToken,
      }
      const changed = { ...user, authProvider: { ...user.authProvider, config: settings } }
      const users = new Map(config.users).set(userName, changed)
      await writeKubeconfig(path, { ...config, users })
    },
  }
}

/** Keeps nothing: for a user that came from no file. */
export const forgetfulTokenStore: TokenStore = {
  exclusively: (_signal, act) => act(),
  read: async () => ({}),
  write: async () => {},
}
