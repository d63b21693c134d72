import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import { apiVersionOf, type ClusterView, type Kind, wellKnown } from '../../core/index.ts'

const name = 'sallyport:addon-token-keys'
const { group } = rbacKinds.clusterRole

/**
 * Lets every service account, and so every guard, read the public keys of add-on tokens at a path. What is there
 * already stays, as somebody may have changed it.
 */
export async function letGuardsReadKeys(
  view: ClusterView,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const ensure = (kind: Kind, fields: object): Promise<unknown> => {
    const made = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, ...fields }
    const asFound = (present: object | undefined) => (present ? undefined : made)
    return changeObject({ view, kind, key: { name } }, asFound, signal)
  }
  await ensure(rbacKinds.clusterRole, { rules: [{ nonResourceURLs: [path], verbs: ['get'] }] })
  await ensure(rbacKinds.clusterRoleBinding, {
    roleRef: { apiGroup: group, kind: 'ClusterRole', name },
    subjects: [{ apiGroup: group, kind: 'Group', name: wellKnown.serviceAccounts }],
  })
}
