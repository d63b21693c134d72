import type { Secret } from '../../core/index.ts'
import type { Cluster, KubeconfigUser } from '../../kubeconfig/index.ts'
import type { DiscoveryParts } from '../client/discovery-order.ts'
import type { JoinIdentity } from './wanted-certificate.ts'

/** What is wanted of a cluster that was found. */
export interface JoinOrder {
  /** As discovery returned it. */
  readonly cluster: Cluster
  /** Who asks: a bootstrap token, or the certificate that is to be renewed. */
  readonly credential: KubeconfigUser
  readonly as: JoinIdentity
  /** A key whose request is already under way; a new one is made unless given. */
  readonly keyPem?: Secret
  /** For how long the certificate is wanted; the signer decides unless given, and may give less. */
  readonly lifetimeMs?: number
  /** How long to go on asking while the failure may pass. */
  readonly timeoutMs?: number
  /** How long to wait for somebody to approve the request; 0 is not at all. */
  readonly approvalTimeoutMs?: number
}

/** What happens while a certificate is asked for. */
export type JoinProgress =
  | { readonly step: 'requested'; readonly request: string; readonly resumed: boolean }
  | { readonly step: 'pending'; readonly request: string; readonly approved: boolean }

/** What joining works with; the defaults are the machine's own. */
export interface JoinParts extends DiscoveryParts {
  readonly onJoinProgress?: (progress: JoinProgress) => void
  /** Told of the key before it is used, so that it can be kept for a second run. */
  readonly keepKey?: (keyPem: Secret) => Promise<void>
}

/** A certificate of the cluster, and its key. */
export interface JoinedIdentity {
  readonly username: string
  readonly certificatePem: string
  readonly keyPem: Secret
  /** Epoch milliseconds. */
  readonly expiresAt: number
  /** Name of the CertificateSigningRequest. */
  readonly request: string
}
