import { type UserInfo, wellKnown } from '../core/index.ts'

/**
 * The name of the node whose identity `user` is; empty when it is a node that names none;
 * `undefined` when it is no node.
 */
export function nodeNameOf(user: UserInfo): string | undefined {
  if (!user.username.startsWith(wellKnown.nodeUserPrefix)) return undefined
  if (!user.groups.includes(wellKnown.nodes)) return undefined
  return user.username.slice(wellKnown.nodeUserPrefix.length)
}

/** The namespace in which each node has the Lease that shows it is alive. */
export const nodeLeaseNamespace = 'kube-node-lease'
