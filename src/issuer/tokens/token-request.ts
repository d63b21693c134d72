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
import type { BoundObjectRef } from './bound-object.ts'

/** What the asker of a token wants, with the defaults filled in. */
export interface TokenWish {
  readonly audiences: readonly string[]
  /** The audiences without the defaults. */
  readonly requested: readonly string[]
  readonly seconds: number
  readonly bound?: BoundObjectRef
}

const defaultSeconds = 3_600
const shortestSeconds = 600
const longestSeconds = 2 ** 32

/** Reads the spec of a TokenRequest; throws a 422 with everything that is wrong with it. */
export function readTokenRequest(object: KubeObject, apiAudiences: readonly string[]): TokenWish {
  const spec = isRecord(object['spec']) ? object['spec'] : {}
  const wanted = spec['audiences']
  const requested = Array.isArray(wanted) ? wanted.filter((item) => typeof item === 'string') : []
  const { expirationSeconds } = spec
  const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : defaultSeconds
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
  if (seconds < shortestSeconds) return [problem('may not specify a duration less than 10 minutes')]
  if (seconds > longestSeconds)
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

/** Who asks for which audience, for which Pod of an account. */
interface AudienceAsk {
  readonly asker: UserInfo
  readonly account: KubeObject
  readonly pod: KubeObject
  /** As the request has them; none stands for the API server. */
  readonly audiences: readonly string[]
}

/**
 * Why a node may not have a token for what it asks for; undefined when it may: a volume of the Pod has a token
 * for that audience, or the node was granted the audience by name.
 */
async function problemOfAudience(
  authorizer: Authorizer,
  { asker, account, pod, audiences }: AudienceAsk,
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
  const { allowed } = await authorizer.authorize({ user: asker, verb, resource }, signal)
  if (allowed) return undefined
  return `audience ${goQuote(audience)} not found in pod spec volume, ${asker.username} is not authorized to request tokens for this audience`
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

/** Who asks for which token. */
export interface TokenAsk {
  readonly asker: UserInfo
  readonly account: KubeObject
  readonly bound: BoundObjectRef | undefined
  /** As the request has them. */
  readonly audiences: readonly string[]
}

/** What the rules are checked with. */
export interface NodeRules {
  readonly view: ClusterView
  readonly authorizer: Authorizer
}

/**
 * A node, or a machine that runs workloads, gets no token but one that is bound to a Pod of its own,
 * whatever rights it was given besides.
 */
export async function requireOfNode(
  rules: NodeRules,
  ask: TokenAsk,
  signal: AbortSignal,
): Promise<void> {
  const machine = machineNameOf(ask.asker)
  const node = nodeNameOf(ask.asker) ?? machine
  if (node === undefined) return
  const who = machine === undefined ? 'node' : 'machine'
  const pod = await boundPod(rules.view, ask, who, signal)
  if (!isOn(pod, node))
    throw refused(ask, `${who} requested token bound to a pod scheduled on a different node`)
  // A machine writes its Pods itself, so their volumes say nothing that it may not.
  if (machine !== undefined) {
    if (machineOf(pod) === machine) return
    throw refused(ask, 'machine requested token bound to a pod that it did not register')
  }
  const problem = await problemOfAudience(rules.authorizer, { ...ask, pod }, signal)
  if (problem !== undefined) throw refused(ask, problem)
}

const refused = ({ account }: TokenAsk, why: string) =>
  forbidden(wellKnownKinds.serviceAccount, account.metadata.name, why)

/** The very Pod that the token is to be bound to. */
async function boundPod(
  view: ClusterView,
  ask: TokenAsk,
  who: string,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { bound, account } = ask
  if (!bound || !isPod(bound)) throw refused(ask, `${who} requested token not bound to a pod`)
  if (bound.uid === '')
    throw refused(ask, `${who} requested token with a pod binding without a uid`)
  const { namespace = '' } = account.metadata
  const pod = await view.get(wellKnownKinds.pod, { namespace, name: bound.name }, signal)
  if (!pod) throw notFound(wellKnownKinds.pod, bound.name)
  if (pod.metadata.uid === bound.uid) return pod
  throw refused(
    ask,
    `the UID in the bound object reference (${bound.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
  )
}

const isPod = ({ kind, apiVersion, name }: BoundObjectRef): boolean =>
  kind === 'Pod' && apiVersion === 'v1' && name !== ''

const isOn = ({ spec }: KubeObject, node: string): boolean =>
  isRecord(spec) && spec['nodeName'] === node
