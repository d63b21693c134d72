import { quotaAdmission } from '../../api/index.ts'
import {
  certificateAdmission,
  escalationAdmission,
  nodeAdmission,
  type RbacAuthorizer,
} from '../../authz/index.ts'
import { joinAdmission, nodeNameAdmission, tokenAdmission } from '../../bootstrap/index.ts'
import type { Admission, Authorizer, Clock, ClusterView } from '../../core/index.ts'
import { parseCsr } from '../../pki/index.ts'
import { machineAdmission } from '../../workload/server/index.ts'

/** What the admission plugins work with. */
export interface AdmissionDeps {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly rbac: RbacAuthorizer
  readonly clock: Clock
  /** Plugins of features, in the order of the features. */
  readonly more: readonly Admission[]
}

function readSubject(encoded: string) {
  return parseCsr(Buffer.from(encoded, 'base64').toString()).subject
}

/** The checks on every write, in this order; the first that throws rejects it. */
export const admissionPlugins = (deps: AdmissionDeps): readonly Admission[] => [
  quotaAdmission, //                                limits of a namespace, set by other users than administrators 403
  nodeAdmission(readSubject, deps.view), //         node writes what is not its own                        403
  certificateAdmission({ ...deps, readSubject }), // approval or signing without the signer's permission    403
  escalationAdmission(deps), //                     role grants more than its writer has                   403
  tokenAdmission, //                                malformed bootstrap token                              422
  nodeNameAdmission, //                             reservation of a node name that is not the writer's    403
  joinAdmission(deps.view, deps.clock), //          CSR of a token that is used up or bound                403
  machineAdmission(deps.view), //                   machine writes what is not its own                     403
  ...deps.more,
]
