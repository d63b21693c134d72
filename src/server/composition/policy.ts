import { Revocations } from '../../authn/index.ts'
import { reconcileDefaultPolicy } from '../../authz/index.ts'
import type { Clock, ClusterView, Logger } from '../../core/index.ts'
import type { Closers } from './closers.ts'
import type { LocalCluster } from './open-cluster.ts'

/** Brings in Kubernetes' default roles and starts to follow all roles and bindings. */
export async function preparePolicy(
  { view, rbac }: LocalCluster,
  parts: { readonly log: Logger; readonly signal: AbortSignal },
  closers: Closers,
): Promise<void> {
  await reconcileDefaultPolicy({ view, log: parts.log }, parts.signal)
  closers.add('rbac', (deadline) => rbac.stop(deadline))
  await rbac.start()
}

/** Starts to follow the list of revoked users and credentials. */
export async function watchRevocations(
  view: ClusterView,
  parts: { readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<Revocations> {
  const revocations = new Revocations({ view, sight: 'always', ...parts })
  closers.add('revocations', (deadline) => revocations.stop(deadline))
  await revocations.start()
  return revocations
}
