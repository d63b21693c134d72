import { nodeNameOf } from '../../authz/index.ts'
import {
  type Authorizer,
  type ClusterView,
  forbidden,
  isRecord,
  type KubeObject,
  machineNameOf,
  machineOf,
  notFound,
  type UserInfo,
  wellKnownKinds,
} from '../../core/index.ts'
import type { BoundObjectRef } from './bound-object.ts'
import { problemOfAudience } from './node-audience.ts'

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
