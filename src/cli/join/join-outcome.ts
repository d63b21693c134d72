import type { Discovery } from '../../discovery/client/index.ts'
import type { Cluster } from '../../kubeconfig/index.ts'

/** What a join has left behind. */
export interface JoinOutcome {
  readonly did: 'found' | 'joined' | 'renewed' | 'present'
  readonly cluster: Cluster
  /** The file, or `-`. */
  readonly kubeconfig: string
  /** Absent if nobody had to look for the cluster. */
  readonly discovery?: Discovery
  /** Absent with --discovery-only. */
  readonly identity?: {
    readonly username: string
    readonly expires: string
    readonly request?: string
  }
  /** The directory of the files for other programs. */
  readonly certDir?: string
}
