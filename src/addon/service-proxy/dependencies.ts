import type { Impersonate } from '../../authn/index.ts'
import type {
  Authentication,
  AuthenticationRequest,
  Authorizer,
  Clock,
  ClusterView,
  Dialer,
  Logger,
  MetricsRegistry,
} from '../../core/index.ts'
import type { AddonTokenMinter } from '../token/index.ts'
import type { ProxyLimits } from './limits.ts'
import type { TargetSource } from './target-source.ts'

/** What the service proxy is made of. */
export interface ServiceProxyParts {
  readonly view: ClusterView
  readonly targets: TargetSource
  readonly dialer: Dialer
  readonly authorizer: Authorizer
  /** Asked again while a stream lives on; `undefined`, or a 401, if its credential proves nobody any more. */
  readonly authenticate: (
    request: AuthenticationRequest,
    signal: AbortSignal,
  ) => Promise<Authentication | undefined>
  /** Asked again while a stream lives on whose user acts as somebody else. */
  readonly impersonate: Impersonate
  readonly minter: AddonTokenMinter
  /** The operator's bounds; a Service may ask for less. */
  readonly limits: ProxyLimits
  /** How often the rights behind an open stream are asked for again. */
  readonly recheckMs: number
  /** Origins of browsers' pages that may ask, besides those of local proxies and of the server itself. */
  readonly origins: readonly string[]
  /** Whether a header claims an identity, by the names that this server has been told as well. */
  readonly isIdentityHeader: (name: string) => boolean
  /** Under which kubelets' certificates are verified. */
  readonly clusterCaPem: () => string
  readonly metrics: MetricsRegistry
  readonly clock: Clock
  readonly log: Logger
}
