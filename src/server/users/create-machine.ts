import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  CommandFailed,
  machineIdentity,
  wellKnownKinds,
} from '../../core/index.ts'
import type { Kubeconfig } from '../../kubeconfig/index.ts'
import type { Pki } from '../../pki/index.ts'
import { workloadBinding } from '../../workload/server/index.ts'
import { createUser } from './create-user.ts'
import type { UserRecord } from './user-records.ts'

/** A machine that is to run workloads. */
export interface NewMachine {
  readonly name: string
  /** Where it may run them. */
  readonly namespaces: readonly [string, ...string[]]
  readonly lifetimeMs: number
  /** The URL of the API in the kubeconfig. */
  readonly server: string
}

/** What makes a text no name of a machine: it is the name of a node and the value of a label. */
export function problemOfMachineName(name: string): string | undefined {
  const isName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
  return isName && name.length <= 63
    ? undefined
    : `${JSON.stringify(name)} cannot be the name of a machine: up to 63 lower-case letters, digits, '-' and '.'`
}

/** Issues the identity under which a machine runs workloads, and the rights for it in some namespaces. */
export async function createMachine(
  machine: NewMachine,
  parts: { readonly view: ClusterView; readonly pki: Pki; readonly clock: Clock },
  signal: AbortSignal,
): Promise<{ readonly record: UserRecord; readonly kubeconfig: Kubeconfig }> {
  const { view } = parts
  const { name, namespaces, lifetimeMs, server } = machine
  for (const namespace of namespaces) await requireNamespace(view, namespace, signal)
  for (const namespace of namespaces) {
    const binding = workloadBinding(name, namespace)
    const target = { view, kind: rbacKinds.roleBinding, key: binding.metadata }
    await changeObject(target, (present) => (present ? undefined : binding), signal)
  }
  const { userPrefix, group, loopbackGroup } = machineIdentity
  // Who reaches the server by loopback is on its machine, and may be reached so in turn.
  const groups = isLoopbackUrl(server) ? [group, loopbackGroup] : [group]
  const user = { name: `${userPrefix}${name}`, groups, lifetimeMs, server }
  return createUser({ ...user, namespace: namespaces[0] }, parts, signal)
}

const isLoopbackUrl = (url: string): boolean =>
  /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(new URL(url).hostname)

async function requireNamespace(view: ClusterView, name: string, signal: AbortSignal) {
  if (await view.get(wellKnownKinds.namespace, { name }, signal)) return
  throw new CommandFailed('NO_NAMESPACE', `there is no namespace ${name}`, {
    hint: `make it with \`kubectl create namespace ${name}\`; nothing was changed`,
  })
}
