import type { KubeClient } from '../client/index.ts'
import type { Clock, Logger } from '../core/index.ts'
import type { TokenFile } from './directory/token-set.ts'
import type { WorkloadPlan, WorkloadPort } from './pod/pod-object.ts'
import type { SendSignal } from './process/child-process.ts'

/** What is to run, and as what. */
export interface WorkloadOptions {
  readonly namespace: string
  readonly serviceAccount: string
  /** The Service that it is to be an endpoint of. */
  readonly service?: string
  readonly ports: readonly WorkloadPort[]
  /** Tokens for others than the API server. */
  readonly audiences: readonly Required<TokenFile>[]
  /** The Pod's name; made up unless given. */
  readonly name?: string
  /** The Pod's address; the one from which this machine reaches the API unless given. */
  readonly ip?: string
  readonly labels: Readonly<Record<string, string>>
  readonly tokenLifetimeMs: number
  readonly leaseMs: number
  readonly graceMs: number
  /** Whether the process gets a mount namespace with the fixed path of in-cluster clients. */
  readonly inCluster: boolean
  readonly command: readonly [string, ...string[]]
}

/** The machine and the cluster that a workload runs between. */
export interface WorkloadHost {
  readonly client: KubeClient
  /** Where the API is. */
  readonly server: URL
  /** Calls back when the API is somewhere else. */
  readonly onMoved: (listener: (server: URL) => void) => void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: string
  readonly isRoot: boolean
  readonly pid: number
  readonly uid: number
  /** Whether there is such a process. */
  readonly isAlive: (pid: number) => boolean
  /** Where private directories may be made; the first that is safe is taken. */
  readonly runtimeDirectories: readonly string[]
  readonly sendSignal: SendSignal
  readonly clock: Clock
  readonly log: Logger
  /** Aborts to ask for the end. */
  readonly drain: AbortSignal
  /** Aborts to end at once. */
  readonly kill: AbortSignal
  /** Called once the Pod is registered, before the process starts. */
  readonly onRegistered: (plan: WorkloadPlan) => void
}
