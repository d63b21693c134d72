export type { WorkloadPlan, WorkloadPort } from './pod/pod-object.ts'
export { runWorkload } from './run-workload.ts'
export type { WorkloadEnd } from './supervise.ts'
export type { WorkloadHost, WorkloadOptions } from './workload.ts'
