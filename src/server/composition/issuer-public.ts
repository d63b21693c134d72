import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import { type ClusterView, hasReason, type KubeObject, wellKnown } from '../../core/index.ts'

const roleName = 'system:service-account-issuer-discovery'
const bindingName = 'sallyport:service-account-issuer-public'
const rbac = 'rbac.authorization.k8s.io'

const everybody = [wellKnown.authenticated, wellKnown.unauthenticated].map((name) => ({
  apiGroup: rbac,
  kind: 'Group',
  name,
}))

const binding: KubeObject = {
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: {
    name: bindingName,
    annotations: { 'sallyport.dev/made-by': '--service-account-issuer-public' },
  },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: roleName },
  subjects: everybody,
}

/** Lets everybody read the documents of the issuer, or takes that right back; other bindings stay as they are. */
export async function setIssuerPublic(
  view: ClusterView,
  isPublic: boolean,
  signal: AbortSignal,
): Promise<void> {
  const kind = rbacKinds.clusterRoleBinding
  if (isPublic) {
    const target = { view, kind, key: { name: bindingName } }
    await changeObject(
      target,
      (present) => (present ? { ...present, subjects: everybody } : binding),
      signal,
    )
    return
  }
  if (!(await view.get(kind, { name: bindingName }, signal))) return
  await view.write('delete', binding, {}, signal).catch((error: unknown) => {
    if (!hasReason(error, 'NotFound')) throw error
  })
}
