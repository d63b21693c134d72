export { machineAdmission } from './machine-admission.ts'
export {
  machineAuthorizer,
  narrowWorkloadRole,
  workloadBinding,
  workloadRole,
} from './machine-authorizer.ts'
export { createStaleWorkloads } from './stale-workloads.ts'
