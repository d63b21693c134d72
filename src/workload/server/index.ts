export { machineAdmission } from './machine-admission.ts'
export { machineAuthorizer } from './machine-authorizer.ts'
export { createStaleWorkloads } from './stale-workloads.ts'
export { workloadBinding, workloadRole } from './workload-role.ts'
