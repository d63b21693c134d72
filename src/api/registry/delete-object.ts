import {
  conflict,
  type Key,
  type KubeObject,
  kubeTime,
  notFound,
  type Preconditions,
} from '../../core/index.ts'
import { RevisionMismatch, type StoredRecord } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/kind-definition.ts'
import { storeKey } from './keys.ts'
import { namespaceKind, requireDeletableNamespace } from './namespace-lifecycle.ts'
import { decodeObject, encodeObject } from './object-bytes.ts'
import type { RegistryContext, WriteOptions } from './registry-context.ts'

/** What becomes of an object's dependents. */
export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground'

/** A request to delete one object. */
export interface Deletion extends WriteOptions {
  readonly key: Key
  readonly preconditions?: Preconditions
  readonly propagationPolicy?: PropagationPolicy
  readonly signal: AbortSignal
}

/** `gone` objects are removed; others wait for their finalizers. */
export interface DeletionResult {
  readonly gone: boolean
  readonly object: KubeObject
}

const finalizerOf = { Orphan: 'orphan', Foreground: 'foregroundDeletion' } as const

function checkPreconditions(
  definition: KindDefinition,
  stored: KubeObject,
  wanted: Preconditions | undefined,
): void {
  const { name, uid, resourceVersion } = stored.metadata
  if (wanted?.uid !== undefined && wanted.uid !== uid)
    throw conflict(
      definition.kind,
      name,
      `Precondition failed: UID in precondition: ${wanted.uid}, UID in object meta: ${uid}`,
    )
  if (wanted?.resourceVersion !== undefined && wanted.resourceVersion !== resourceVersion)
    throw conflict(
      definition.kind,
      name,
      `Precondition failed: ResourceVersion in precondition: ${wanted.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`,
    )
}

function finalizersFor(stored: KubeObject, policy: PropagationPolicy | undefined): string[] {
  const present = stored.metadata.finalizers ?? []
  if (policy === undefined) return present
  const others = present.filter((name) => name !== 'orphan' && name !== 'foregroundDeletion')
  return policy === 'Background' ? others : [...others, finalizerOf[policy]]
}

function waitsForSomething(definition: KindDefinition, draft: KubeObject): boolean {
  if (draft.metadata.finalizers?.length) return true
  if (definition.kind.resource !== namespaceKind.resource) return false
  return Boolean((draft['spec'] as { finalizers?: unknown[] } | undefined)?.finalizers?.length)
}

function markDeleted(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
): void {
  if (draft.metadata.deletionTimestamp) return
  draft.metadata.deletionTimestamp = kubeTime(context.clock.now())
  draft.metadata.deletionGracePeriodSeconds = 0
  if (definition.hasGeneration && draft.metadata.generation !== undefined)
    draft.metadata.generation += 1
  if (definition.kind.resource === namespaceKind.resource)
    draft['status'] = { ...(draft['status'] as object | undefined), phase: 'Terminating' }
}

/** Removes a record for good and tells the hooks; returns the revision of the deletion. */
export async function removeRecord(
  context: RegistryContext,
  definition: KindDefinition,
  record: StoredRecord,
): Promise<number> {
  const last = decodeObject(definition.kind, record)
  const revision = await context.store.delete(record.key, record.revision)
  for (const hook of context.hooks) {
    if (hook.kind === definition.kind) hook.afterDelete?.(last)
  }
  return revision
}

async function attemptDeletion(
  context: RegistryContext,
  definition: KindDefinition,
  deletion: Deletion,
  record: StoredRecord,
): Promise<DeletionResult> {
  const stored = decodeObject(definition.kind, record)
  checkPreconditions(definition, stored, deletion.preconditions)
  for (const admit of context.admissions) {
    await admit(
      {
        user: deletion.user,
        operation: 'delete',
        kind: definition.kind,
        subresource: '',
        namespace: deletion.key.namespace ?? '',
        name: deletion.key.name,
        oldObject: stored,
        dryRun: deletion.dryRun,
      },
      deletion.signal,
    )
  }
  const draft = decodeObject(definition.kind, record)
  const finalizers = finalizersFor(stored, deletion.propagationPolicy)
  if (finalizers.length > 0) draft.metadata.finalizers = finalizers
  else delete draft.metadata.finalizers
  const waits = waitsForSomething(definition, draft)
  if (waits) markDeleted(context, definition, draft)
  if (deletion.dryRun) return { gone: !waits, object: draft }
  if (!waits) {
    await removeRecord(context, definition, record)
    return { gone: true, object: stored }
  }
  const value = encodeObject(draft)
  if (!value.equals(record.value)) {
    const written = await context.store.update(record.key, value, record.revision)
    draft.metadata.resourceVersion = String(written.revision)
  }
  return { gone: false, object: draft }
}

/** Deletes an object, or marks it and lets its finalizers do their work first. */
export async function deleteObject(
  context: RegistryContext,
  definition: KindDefinition,
  deletion: Deletion,
): Promise<DeletionResult> {
  requireDeletableNamespace(definition.kind, deletion.key.name)
  for (;;) {
    const record = context.store.get(storeKey(definition.kind, deletion.key))
    if (!record) throw notFound(definition.kind, deletion.key.name)
    try {
      return await attemptDeletion(context, definition, deletion, record)
    } catch (error) {
      // Somebody changed it meanwhile: judge the object anew. Each round means another writer got on.
      if (!(error instanceof RevisionMismatch)) throw error
    }
  }
}
