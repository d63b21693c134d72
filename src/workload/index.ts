export type { WorkloadPlan, WorkloadPort } from './pod/workload-plan.ts'
export { runWorkload } from './run-workload.ts'
export type { WorkloadEnd } from './supervise.ts'
export type { WorkloadHost, WorkloadOptions } from './workload-host.ts'
