import { nodeNameOf } from '../../authz/index.ts'
import {
  type ClusterView,
  forbidden,
  isRecord,
  type KubeObject,
  notFound,
  type UserInfo,
  wellKnownKinds,
} from '../../core/index.ts'
import type { BoundObjectRef } from './bound-object.ts'

/** Who asks for which token. */
export interface TokenAsk {
  readonly asker: UserInfo
  readonly account: KubeObject
  readonly bound: BoundObjectRef | undefined
}

/** A node gets no token but one that is bound to a Pod of its own, whatever rights it was given besides. */
export async function requireOfNode(
  view: ClusterView,
  { asker, account, bound }: TokenAsk,
  signal: AbortSignal,
): Promise<void> {
  const node = nodeNameOf(asker)
  if (node === undefined) return
  const refuse = (why: string) =>
    forbidden(wellKnownKinds.serviceAccount, account.metadata.name, why)
  if (!bound || bound.kind !== 'Pod' || bound.apiVersion !== 'v1' || bound.name === '')
    throw refuse('node requested token not bound to a pod')
  if (bound.uid === '') throw refuse('node requested token with a pod binding without a uid')
  const { namespace = '' } = account.metadata
  const pod = await view.get(wellKnownKinds.pod, { namespace, name: bound.name }, signal)
  if (!pod) throw notFound(wellKnownKinds.pod, bound.name)
  if (pod.metadata.uid !== bound.uid)
    throw refuse(
      `the UID in the bound object reference (${bound.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    )
  const spec = pod['spec']
  if (!isRecord(spec) || spec['nodeName'] !== node)
    throw refuse('node requested token bound to a pod scheduled on a different node')
}
