import { ApiError, apiVersionOf, type Key, type KubeObject } from '../../core/index.ts'
import { RecordDamaged, type StoredRecord, type StoreEvent } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { storeKey } from './object-bytes.ts'
import type { RegistryContext } from './registry.ts'

/** The record of an object, or the damage that keeps it from being read. */
export function readEvenDamaged(
  context: RegistryContext,
  definition: KindDefinition,
  key: Key,
): StoredRecord | RecordDamaged | undefined {
  try {
    return context.store.get(storeKey(definition.kind, key))
  } catch (error) {
    if (error instanceof RecordDamaged) return error
    throw error
  }
}

/** All that is still known of an object whose record is damaged. */
export const remainsOf = ({ kind }: KindDefinition, key: Key): KubeObject => ({
  kind: kind.kind,
  apiVersion: apiVersionOf(kind),
  metadata: { name: key.name, ...(key.namespace !== undefined && { namespace: key.namespace }) },
})

/** True when a damaged value was replaced or deleted: nobody can say what it meant to a watcher. */
export const hasLostValue = ({ record, previous }: StoreEvent): boolean =>
  record.value.length === 0 || previous?.value.length === 0

/** The 410 for a watch that comes upon a value that is lost: only a new list shows what is true. */
export const valueLost = (): ApiError =>
  new ApiError('Expired', 'a damaged record was repaired: list again to see what is there now')
