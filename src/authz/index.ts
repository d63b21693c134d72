export {
  type CertificateAdmissionOptions,
  certificateAdmission,
  type RequestedSubject,
  type SubjectReader,
  signers,
} from './certificate-admission.ts'
export { type ReconcileOptions, reconcileDefaultPolicy } from './default-policy/reconcile.ts'
export { defaultPolicy } from './default-policy/roles.ts'
export { type EscalationOptions, escalationAdmission } from './escalation-admission.ts'
export { nodeAdmission } from './node-admission.ts'
export { nodeAuthorizer, nodeNameOf, selectsNode } from './node-authorizer.ts'
export { RbacAuthorizer } from './rbac-authorizer.ts'
export { rbacKinds } from './rbac-objects.ts'
export { RoleAggregation } from './role-aggregation.ts'
export { denial, describeDenial, isSuperuser, superusers, union } from './union.ts'
