import { ApiError, forbidden, type Kind, type KubeObject, notFound } from '../../core/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { namespace } from '../kinds/namespace.ts'
import { decodeObject, storeKey } from './object-bytes.ts'
import type { RegistryContext } from './registry.ts'

const { kind: namespaceKind } = namespace

/** True for Namespaces themselves. */
export const isNamespaceKind = ({ group, resource }: Kind): boolean =>
  group === namespaceKind.group && resource === namespaceKind.resource

const undeletable = new Set(['default', 'kube-system', 'kube-public'])

/** Refuses new content for a namespace that does not exist or is on its way out. */
export function requireLivingNamespace(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
): void {
  if (!definition.kind.namespaced) return
  const name = draft.metadata.namespace ?? ''
  const record = context.store.get(storeKey(namespaceKind, { name }))
  if (!record) throw notFound(namespaceKind, name)
  // Searching the bytes first spares parsing a living namespace on every create.
  if (!record.value.includes('"deletionTimestamp"')) return
  if (!decodeObject(namespaceKind, record).metadata.deletionTimestamp) return
  const why = `unable to create new content in namespace ${name} because it is being terminated`
  const refusal = forbidden(definition.kind, draft.metadata.name, why)
  throw new ApiError('Forbidden', refusal.message, {
    details: {
      ...refusal.details,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${name} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    },
  })
}

/** Refuses to delete the namespaces that the cluster itself lives in. */
export function requireDeletableNamespace(kind: Kind, name: string): void {
  if (isNamespaceKind(kind) && undeletable.has(name))
    throw forbidden(kind, name, 'this namespace may not be deleted')
}
