import { nodeNameOf } from '../../authz/index.ts'
import {
  type Authorizer,
  type ClusterView,
  forbidden,
  goQuote,
  invalid,
  isRecord,
  type KubeObject,
  machineNameOf,
  machineOf,
  notFound,
  type StatusCause,
  type UserInfo,
  wellKnownKinds,
} from '../../core/index.ts'
import { defaultLifetimeSeconds, maxLifetimeSeconds, minLifetimeSeconds } from '../limits.ts'
import type { BoundObjectRef } from './bound-object.ts'

/** The spec of a TokenRequest with its defaults. */
export interface TokenRequestSpec {
  readonly audiences: readonly string[]
  /** The audiences without the defaults. */
  readonly requested: readonly string[]
  readonly seconds: number
  readonly bound?: BoundObjectRef
}

/** Parses the spec of a TokenRequest; throws Invalid (422) with all problems. */
export function readTokenRequest(
  object: KubeObject,
  apiAudiences: readonly string[],
): TokenRequestSpec {
  const spec = isRecord(object['spec']) ? object['spec'] : {}
  const audiences = spec['audiences']
  const requested = Array.isArray(audiences)
    ? audiences.filter((item) => typeof item === 'string')
    : []
  const { expirationSeconds } = spec
  const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : defaultLifetimeSeconds
  const causes = problemsOf(seconds)
  if (causes.length > 0)
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', causes)
  const bound = boundRef(spec['boundObjectRef'])
  return {
    audiences: requested.length > 0 ? requested : apiAudiences,
    requested,
    seconds,
    ...(bound && { bound }),
  }
}

function problemsOf(seconds: number): StatusCause[] {
  const problem = (why: string): StatusCause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${seconds}: ${why}`,
    field: 'spec.expirationSeconds',
  })
  if (seconds < minLifetimeSeconds)
    return [problem('may not specify a duration less than 10 minutes')]
  if (seconds > maxLifetimeSeconds)
    return [problem('may not specify a duration larger than 2^32 seconds')]
  return []
}

function boundRef(value: unknown): BoundObjectRef | undefined {
  if (!isRecord(value)) return undefined
  const text = (field: string): string => {
    const found = value[field]
    return typeof found === 'string' ? found : ''
  }
  return {
    kind: text('kind'),
    apiVersion: text('apiVersion'),
    name: text('name'),
    uid: text('uid'),
  }
}

/** A request for an audience, for a Pod of a service account. */
interface AudienceRequest {
  readonly user: UserInfo
  readonly account: KubeObject
  readonly pod: KubeObject
  /** As in the request; none means the API server. */
  readonly audiences: readonly string[]
}

/**
 * Why a node may not request a token for an audience; undefined if it may: a volume of the Pod has a token
 * for that audience, or the node is authorized for the audience by name.
 */
async function problemOfAudience(
  authorizer: Authorizer,
  { user, account, pod, audiences }: AudienceRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [audience = '', ...others] = audiences
  if (others.length > 0) return 'node may only request 0 or 1 audiences'
  if (audiencesOfVolumes(pod).includes(audience)) return undefined
  const { name, namespace = '' } = account.metadata
  const resource = {
    group: '',
    version: 'v1',
    resource: audience,
    subresource: '',
    namespace,
    name,
  }
  const verb = 'request-serviceaccounts-token-audience'
  const { allowed } = await authorizer.authorize({ user, verb, resource }, signal)
  if (allowed) return undefined
  return `audience ${goQuote(audience)} not found in pod spec volume, ${user.username} is not authorized to request tokens for this audience`
}

function audiencesOfVolumes({ spec }: KubeObject): string[] {
  return membersOf(spec, 'volumes')
    .flatMap((volume) => membersOf(volume['projected'], 'sources'))
    .flatMap(({ serviceAccountToken: token }) =>
      isRecord(token) ? [typeof token['audience'] === 'string' ? token['audience'] : ''] : [],
    )
}

function membersOf(value: unknown, list: string): Record<string, unknown>[] {
  const members = isRecord(value) ? value[list] : undefined
  return Array.isArray(members) ? members.filter(isRecord) : []
}

/** A request for a token. */
export interface NodeTokenRequest {
  readonly user: UserInfo
  readonly account: KubeObject
  readonly bound: BoundObjectRef | undefined
  /** As in the request. */
  readonly audiences: readonly string[]
}

/** What the check depends on. */
export interface NodeRules {
  readonly view: ClusterView
  readonly authorizer: Authorizer
}

/**
 * A node, or a machine that runs workloads, gets only tokens that are bound to one of its own Pods, whatever other
 * permissions it has. Throws Forbidden.
 */
export async function requireOfNode(
  rules: NodeRules,
  request: NodeTokenRequest,
  signal: AbortSignal,
): Promise<void> {
  const machine = machineNameOf(request.user)
  const node = nodeNameOf(request.user) ?? machine
  if (node === undefined) return
  const requester = machine === undefined ? 'node' : 'machine'
  const pod = await boundPod(rules.view, request, requester, signal)
  if (!isOn(pod, node))
    throw denied(
      request,
      `${requester} requested token bound to a pod scheduled on a different node`,
    )
  // A machine creates its Pods itself, so their volumes prove nothing.
  if (machine !== undefined) {
    if (machineOf(pod) === machine) return
    throw denied(request, 'machine requested token bound to a pod that it did not register')
  }
  const problem = await problemOfAudience(rules.authorizer, { ...request, pod }, signal)
  if (problem !== undefined) throw denied(request, problem)
}

const denied = ({ account }: NodeTokenRequest, why: string) =>
  forbidden(wellKnownKinds.serviceAccount, account.metadata.name, why)

/** The Pod that the token will be bound to. */
async function boundPod(
  view: ClusterView,
  request: NodeTokenRequest,
  requester: string,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { bound, account } = request
  if (!bound || !isPod(bound))
    throw denied(request, `${requester} requested token not bound to a pod`)
  if (bound.uid === '')
    throw denied(request, `${requester} requested token with a pod binding without a uid`)
  const { namespace = '' } = account.metadata
  const pod = await view.get(wellKnownKinds.pod, { namespace, name: bound.name }, signal)
  if (!pod) throw notFound(wellKnownKinds.pod, bound.name)
  if (pod.metadata.uid === bound.uid) return pod
  throw denied(
    request,
    `the UID in the bound object reference (${bound.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
  )
}

const isPod = ({ kind, apiVersion, name }: BoundObjectRef): boolean =>
  kind === 'Pod' && apiVersion === 'v1' && name !== ''

const isOn = ({ spec }: KubeObject, node: string): boolean =>
  isRecord(spec) && spec['nodeName'] === node
