import type { Impersonate } from '../../authn/index.ts'
import type {
  Authorizer,
  Clock,
  ClusterView,
  Dialer,
  Logger,
  MetricsRegistry,
} from '../../core/index.ts'
import type { AddressTest } from '../../http/index.ts'
import type { AddonTokenMinter } from '../token/index.ts'
import type { ProxyLimits } from './limits.ts'
import type { TargetSource } from './target-cache.ts'

/** What the service proxy is made of. */
export interface ServiceProxyParts {
  readonly view: ClusterView
  readonly targets: TargetSource
  /** The operator's limit on the addresses of targets; applies besides the addresses that are never dialed. */
  readonly isAllowedTarget: AddressTest
  readonly dialer: Dialer
  readonly authorizer: Authorizer
  /** Asked again while a stream lives on whose user acts as somebody else. */
  readonly impersonate: Impersonate
  readonly minter: AddonTokenMinter
  /** The operator's bounds; a Service may ask for less. */
  readonly limits: ProxyLimits
  /** How often the rights behind an open stream are asked for again. */
  readonly recheckMs: number
  /** Namespaces whose Services run on the API's origin, without a sandbox. */
  readonly sameOriginNamespaces: ReadonlySet<string>
  /** Whether a header claims an identity, by the names that this server has been told as well, unless it is allowed. */
  readonly isIdentityHeader: (name: string, allowed?: ReadonlySet<string>) => boolean
  /** Under which kubelets' certificates are verified. */
  readonly clusterCaPem: () => string
  readonly metrics: MetricsRegistry
  readonly clock: Clock
  readonly log: Logger
}
