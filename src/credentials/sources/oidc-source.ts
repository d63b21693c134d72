import { createHash } from 'node:crypto'
import type { Clock, Secret } from '../../core/index.ts'
import type { AuthProviderConfig, Cluster } from '../../kubeconfig/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import { CredentialError } from '../errors.ts'
import { canonicalText } from './exec-source.ts'
import { claimedExpiry } from './explain.ts'
import {
  forgetfulTokenStore,
  kubeconfigTokenStore,
  type OidcConfig,
  type OidcTokens,
  oidcConfig,
  refreshTokens,
  type TokenStore,
} from './oidc-refresh.ts'
import { RotatingSource } from './rotating-source.ts'
import { type CredentialObserver, nobody } from './source.ts'
import { processRegistry, type SourceRegistry } from './source-registry.ts'

/** Whose tokens they are and where they are kept. */
export interface OidcUser {
  readonly name: string
  /** The kubeconfig that has the user; new tokens are lost with the process if there is none. */
  readonly file?: string
}

/** What an oidc source needs of its host. */
export interface OidcSourceHost {
  readonly clock: Clock
  readonly observer?: CredentialObserver
  readonly registry?: SourceRegistry | 'none'
  readonly random?: () => number
}

/** As Kubernetes does, an id-token is not used in its last ten seconds. */
const skewMs = 10_000

/** The id-token of a legacy `auth-provider: oidc`, refreshed and written back to the kubeconfig in time. */
export function oidcSource(
  provider: AuthProviderConfig,
  { cluster, user }: { readonly cluster: Cluster; readonly user: OidcUser },
  host: OidcSourceHost,
): CredentialSource {
  const config = oidcConfig(provider)
  const store =
    user.file === undefined
      ? forgetfulTokenStore
      : kubeconfigTokenStore(user.file, user.name, host.clock)
  const make = (): RotatingSource => {
    const session = new OidcSession(config, store, host.clock)
    return new RotatingSource({
      clock: host.clock,
      observer: host.observer ?? nobody,
      fetch: (_refusal, signal) => session.next(signal),
      times: { skewMs },
      ...(host.random && { random: host.random }),
    })
  }
  const { registry = processRegistry } = host
  if (registry === 'none') return make()
  const facts = ['oidc', cluster.server, config.issuer, config.clientId, user.name, user.file]
  // Without a file nothing but the tokens tells two users apart.
  const tokens = user.file === undefined ? [config.idToken, config.refreshToken] : []
  const key = createHash('sha256').update(canonicalText([...facts, ...tokens]))
  return registry.acquire(key.digest('base64'), make)
}

/** One login: the tokens it has now. */
class OidcSession {
  readonly #config: OidcConfig
  readonly #store: TokenStore
  readonly #clock: Clock
  #tokens: OidcTokens
  /** The id-token that was handed out last. */
  #used: Secret | undefined

  constructor(config: OidcConfig, store: TokenStore, clock: Clock) {
    this.#config = config
    this.#store = store
    this.#clock = clock
    this.#tokens = config
  }

  /** An id-token that was not handed out before. */
  async next(signal: AbortSignal): Promise<Credential> {
    return (
      this.#take(this.#tokens.idToken) ??
      (await this.#store.exclusively(signal, () => this.#refresh(signal)))
    )
  }

  async #refresh(signal: AbortSignal): Promise<Credential> {
    // Another process may have refreshed them, and a refresh token often works only once.
    this.#tokens = { ...this.#tokens, ...(await this.#store.read()) }
    const { idToken, refreshToken } = this.#tokens
    const found = this.#take(idToken)
    if (found) return found
    if (!refreshToken) {
      throw new CredentialError(
        'PROVIDER',
        'the id-token has expired and there is no refresh-token to renew it with',
        { hint: 'log in again with the tool that made this kubeconfig' },
      )
    }
    const renewed = await refreshTokens(this.#config, refreshToken, signal)
    await this.#store.write(renewed)
    this.#tokens = renewed
    this.#used = renewed.idToken
    return credentialOf(renewed.idToken)
  }

  #take(idToken: Secret | undefined): Credential | undefined {
    if (!idToken || idToken.reveal() === this.#used?.reveal()) return undefined
    const expiry = claimedExpiry(idToken.reveal())
    if (expiry === undefined || this.#clock.now() + skewMs >= expiry) return undefined
    this.#used = idToken
    return credentialOf(idToken)
  }
}

function credentialOf(idToken: Secret): Credential {
  const expiresAt = claimedExpiry(idToken.reveal())
  return { token: idToken, ...(expiresAt !== undefined && { expiresAt }) }
}
