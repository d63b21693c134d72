import type { Kind, KubeObject } from '../../core/index.ts'
import { certificateSigningRequest } from './certificate-signing-request.ts'
import { configMap } from './config-map.ts'
import type { KindDefinition } from './define-kind.ts'
import { endpointSlice } from './endpoint-slice.ts'
import { endpoints } from './endpoints.ts'
import { event } from './event.ts'
import { lease } from './lease.ts'
import { namespace } from './namespace.ts'
import { node } from './node.ts'
import { pod } from './pod/pod.ts'
import { clusterRole, clusterRoleBinding, role, roleBinding } from './rbac.ts'
import { secret } from './secret.ts'
import { service } from './service/service.ts'
import { serviceAccount } from './service-account.ts'

/** Every kind that is stored, in the order that API discovery lists them. */
export const kindDefinitions: readonly KindDefinition[] = [
  configMap,
  endpoints,
  event,
  namespace,
  node,
  pod,
  secret,
  serviceAccount,
  service,
  certificateSigningRequest,
  lease,
  endpointSlice,
  clusterRoleBinding,
  clusterRole,
  roleBinding,
  role,
]

const resourceKey = (group: string, version: string, resource: string): string =>
  `${group}/${version}/${resource}`

const byResource = new Map(
  kindDefinitions.map((definition) => {
    const { group, version, resource } = definition.kind
    return [resourceKey(group, version, resource), definition]
  }),
)

const byKind = new Map(
  kindDefinitions.map((definition) => {
    const { group, version, kind } = definition.kind
    return [resourceKey(group, version, kind), definition]
  }),
)

/** The definition of the kind that a URL names by group, version and plural. */
export const definitionOfResource = ({
  group,
  version,
  resource,
}: Pick<Kind, 'group' | 'version' | 'resource'>): KindDefinition | undefined =>
  byResource.get(resourceKey(group, version, resource))

/** The definition of the kind that an object names by `apiVersion` and `kind`. */
export function definitionOfObject(
  object: Pick<KubeObject, 'apiVersion' | 'kind'>,
): KindDefinition | undefined {
  const slash = object.apiVersion.indexOf('/')
  const group = slash < 0 ? '' : object.apiVersion.slice(0, slash)
  return byKind.get(resourceKey(group, object.apiVersion.slice(slash + 1), object.kind))
}

export * from './define-kind.ts'
export {
  clusterRole,
  configMap,
  endpointSlice,
  endpoints,
  event,
  namespace,
  node,
  pod,
  secret,
  service,
  serviceAccount,
}
