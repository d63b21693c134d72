export {
  type CertificateAdmissionOptions,
  certificateAdmission,
  type RequestedSubject,
  type SubjectReader,
  signers,
} from './certificate-admission.ts'
export { defaultPolicy } from './default-policy/policy.ts'
export { type ReconcileOptions, reconcileDefaultPolicy } from './default-policy/reconcile.ts'
export { denial, describeDenial } from './denial.ts'
export { type EscalationOptions, escalationAdmission } from './escalation.ts'
export { nodeAdmission } from './node-admission.ts'
export { nodeAuthorizer, selectsNode } from './node-authorizer.ts'
export { nodeNameOf } from './node-identity.ts'
export { RbacAuthorizer } from './rbac-authorizer.ts'
export { rbacKinds } from './rbac-kinds.ts'
export { RoleAggregation } from './role-aggregation.ts'
export { isSuperuser, superusers } from './superusers.ts'
export { union } from './union.ts'
