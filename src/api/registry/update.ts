import { isDeepStrictEqual } from 'node:util'
import { type Key, type Kind, type KubeObject, notFound, objectModified } from '../../core/index.ts'
import { RevisionMismatch, type StoredRecord } from '../../storage/index.ts'
import type { KindDefinition, Subresource } from '../kinds/define-kind.ts'
import { isHeld, removeRecord } from './delete.ts'
import { decodeObject, encodeObject, storeKey } from './object-bytes.ts'
import { type Before, prepareUpdate } from './prepare-update.ts'
import type { RegistryContext, WriteOptions, WriteResult } from './registry.ts'
import { assignBeforeStore } from './service-addresses.ts'

/** How often a change that names no resourceVersion is tried when others write in between. */
const maxAttempts = 16

/** A change of a stored object. */
export interface Change extends WriteOptions {
  readonly key: Key
  readonly subresource?: Subresource
  /** Makes the new object from the stored one, which it may change in place; runs once per attempt. */
  readonly mutate: (stored: KubeObject) => KubeObject | Promise<KubeObject>
}

async function admitChange(
  context: RegistryContext,
  { kind }: KindDefinition,
  change: Change,
  objects: { readonly draft: KubeObject; readonly stored: KubeObject },
): Promise<void> {
  const { user, key, dryRun, signal } = change
  const { name, namespace = '' } = key
  const about = { user, kind, namespace, name, dryRun, subresource: change.subresource?.name ?? '' }
  const { draft: object, stored: oldObject } = objects
  await context.admissions.admit({ ...about, operation: 'update', object, oldObject }, signal)
}

/** Equal but for the order of fields, which does not change how many bytes an object has. */
function isUnchanged(kind: Kind, value: Buffer, { record, stored }: Before): boolean {
  if (value.length !== record.value.length) return false
  if (value.equals(record.value)) return true
  return isDeepStrictEqual(decodeObject(kind, { ...record, value }), stored)
}

async function storeChange(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  before: Before & Pick<Change, 'user'>,
): Promise<WriteResult> {
  const { record, stored, user } = before
  const { kind } = definition
  const assigned = assignBeforeStore(context, kind, draft, stored)
  const value = encodeObject(draft)
  // An update that changes nothing is not written: no revision, no event, as in Kubernetes.
  if (isUnchanged(kind, value, before)) {
    assigned.undo()
    return { object: stored, record }
  }
  try {
    const { name } = draft.metadata
    const written = await context.quota.update(record, value, { user, kind, name })
    assigned.keep()
    draft.metadata.resourceVersion = String(written.revision)
    return { object: draft, record: written }
  } catch (cause) {
    assigned.undo()
    throw cause
  }
}

/** One attempt on the object as it is now; `undefined` when somebody else was quicker. */
async function attemptChange(
  context: RegistryContext,
  definition: KindDefinition,
  change: Change,
  record: StoredRecord,
): Promise<WriteResult | undefined> {
  const { kind } = definition
  const stored = decodeObject(kind, record)
  const made = change.mutate(decodeObject(kind, record))
  // Not awaited where nothing is pending: all checks of one change are then one piece of work.
  const sent = made instanceof Promise ? await made : made
  const draft = prepareUpdate(context, definition, { ...change, sent }, { record, stored })
  await admitChange(context, definition, change, { draft, stored })
  if (change.dryRun) {
    assignBeforeStore(context, kind, draft, stored).undo()
    return { object: draft }
  }
  // Its deletion was asked for, and this change took away the last thing that it waited for.
  const isFinished = Boolean(draft.metadata.deletionTimestamp) && !isHeld(kind, draft)
  try {
    const { user } = change
    if (!isFinished) return await storeChange(context, definition, draft, { record, stored, user })
    await removeRecord(context, definition, record)
    return { object: draft }
  } catch (error) {
    if (error instanceof RevisionMismatch) return undefined
    throw error
  }
}

/** Changes a stored object. Who states a version and loses a race meets another version in the next attempt. */
export async function updateObject(
  context: RegistryContext,
  definition: KindDefinition,
  change: Change,
): Promise<WriteResult> {
  const { name } = change.key
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const record = context.store.get(storeKey(definition.kind, change.key))
    if (!record) throw notFound(definition.kind, name)
    const result = await attemptChange(context, definition, change, record)
    if (result) return result
  }
  throw objectModified(definition.kind, name)
}
