import type { TokenFile } from '../directory/token-set.ts'

/** A port that the process serves. */
export interface WorkloadPort {
  readonly name?: string
  readonly port: number
}

/** Everything about a workload that its Pod says. */
export interface WorkloadPlan {
  readonly machine: string
  readonly namespace: string
  readonly name: string
  readonly serviceAccount: string
  readonly labels: Readonly<Record<string, string>>
  /** The container's name. */
  readonly container: string
  readonly ip: string
  readonly ports: readonly WorkloadPort[]
  readonly tokens: readonly TokenFile[]
  readonly tokenSeconds: number
}
