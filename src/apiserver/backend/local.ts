import {
  answerReview,
  LocalClusterView,
  openRegistry,
  type QuotaLimits,
  quotaAdmission,
  type RegistryContext,
  type ResourceApi,
  type ReviewSources,
  serverUser,
} from '../../api/index.ts'
import {
  certificateAdmission,
  escalationAdmission,
  nodeAdmission,
  nodeAuthorizer,
  RbacAuthorizer,
  superusers,
  union,
} from '../../authz/index.ts'
import type {
  Admission,
  Authenticator,
  Authorizer,
  Backend,
  Clock,
  ClusterView,
  Logger,
} from '../../core/index.ts'
import { parseCsr } from '../../pki/index.ts'
import type { Store } from '../../storage/index.ts'
import { machineAuthorizer } from '../../workload/server/index.ts'

/** A cluster on our own registry: its objects, and who may do what with them. */
export interface LocalCluster {
  readonly context: RegistryContext
  readonly view: ClusterView
  readonly rbac: RbacAuthorizer
  readonly authorizer: Authorizer
  readonly reviews: ReviewSources
  /** Adds checks on writes, of features that need the open cluster themselves. */
  addAdmissions(more: readonly Admission[]): void
}

/** What a local cluster is made of. */
export interface LocalClusterParts {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly serviceCidrs: readonly [string, ...string[]]
  readonly limits?: QuotaLimits
  readonly authenticateToken: ReviewSources['authenticateToken']
  readonly issueToken?: ReviewSources['issueToken']
}

function subjectOfRequest(encoded: string) {
  return parseCsr(Buffer.from(encoded, 'base64').toString()).subject
}

/** Puts registry, authorization and the checks on writes together. */
export function openCluster(parts: LocalClusterParts): LocalCluster {
  const { store, clock, log, serviceCidrs, limits, authenticateToken, issueToken } = parts
  // Filled below: the checks need the view, and the view needs the registry that they guard.
  const admissions: Admission[] = []
  const context = openRegistry({
    store,
    clock,
    log,
    serviceCidrs,
    admissions,
    ...(limits && { limits }),
  })
  const view: ClusterView = new LocalClusterView(context, (kind, object, signal) =>
    answerReview({ ...object, kind }, serverUser, reviews, signal),
  )
  const rbac = new RbacAuthorizer(view, log)
  const authorizer = union([superusers, nodeAuthorizer(view), machineAuthorizer(view), rbac])
  const reviews: ReviewSources = { authorizer, authenticateToken, issueToken, clock }
  admissions.push(
    quotaAdmission,
    nodeAdmission(subjectOfRequest, view),
    certificateAdmission({ authorizer, readSubject: subjectOfRequest }),
    escalationAdmission({ authorizer, rbac, view }),
  )
  return {
    context,
    view,
    rbac,
    authorizer,
    reviews,
    addAdmissions: (more) => admissions.push(...more),
  }
}

/** The pipeline's end on our own registry. */
export function localBackend(
  { view, authorizer }: LocalCluster,
  resources: ResourceApi,
  tokens: readonly Authenticator[],
): Backend {
  return {
    view,
    authorizer,
    tokens,
    forward: (request, response, signal) => resources.handle(request, response, signal),
  }
}
