import {
  conflict,
  type Key,
  type Kind,
  type KubeObject,
  kubeTime,
  notFound,
  type Preconditions,
} from '../../core/index.ts'
import { RevisionMismatch, type StoredRecord } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { fieldsAt, textsAt } from '../kinds/fields.ts'
import { isNamespaceKind, requireDeletableNamespace } from './namespace-lifecycle.ts'
import { decodeObject, encodeObject, storeKey } from './object-bytes.ts'
import type { RegistryContext, WriteOptions } from './registry.ts'

/** What becomes of an object's dependents. */
export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground'

/** The finalizers by which the garbage collector knows what to do before an object goes. */
const finalizerOf = { Orphan: 'orphan', Foreground: 'foregroundDeletion' } as const
const ofPolicies: ReadonlySet<string> = new Set(Object.values(finalizerOf))

/** The finalizers of an object that is deleted with `policy`: those of other policies give way. */
function finalizersFor({ metadata }: KubeObject, policy: PropagationPolicy | undefined): string[] {
  const present = metadata.finalizers ?? []
  if (policy === undefined) return present
  const others = present.filter((name) => !ofPolicies.has(name))
  return policy === 'Background' ? others : [...others, finalizerOf[policy]]
}

/** True while something must still happen before the object can go. */
export function isHeld(kind: Kind, object: KubeObject): boolean {
  if (object.metadata.finalizers?.length) return true
  // A Namespace has a list of its own, which is emptied once its content is gone.
  return isNamespaceKind(kind) && textsAt(fieldsAt(object, 'spec'), 'finalizers').length > 0
}

/** A request to delete one object. */
export interface Deletion extends WriteOptions {
  readonly key: Key
  readonly preconditions?: Preconditions
  readonly propagationPolicy?: PropagationPolicy
}

/** `gone` objects are removed; others wait for their finalizers. */
export interface DeletionResult {
  readonly gone: boolean
  readonly object: KubeObject
}

/** Kubernetes words this by the kind, except for namespaces, which have a registry of their own. */
function checkPreconditions(
  { kind }: KindDefinition,
  stored: KubeObject,
  wanted: Preconditions = {},
): void {
  const { name, uid, resourceVersion } = stored.metadata
  const isNamespace = isNamespaceKind(kind)
  const shown = isNamespace ? kind : { group: kind.group, resource: kind.kind }
  if (wanted.uid !== undefined && wanted.uid !== uid)
    throw conflict(
      shown,
      name,
      isNamespace
        ? `Precondition failed: UID in precondition: ${wanted.uid}, UID in object meta: ${uid}`
        : `the UID in the precondition (${wanted.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    )
  if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== resourceVersion)
    throw conflict(
      shown,
      name,
      isNamespace
        ? `Precondition failed: ResourceVersion in precondition: ${wanted.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`
        : `the ResourceVersion in the precondition (${wanted.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    )
}

function markDeleted(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
): void {
  const { metadata } = draft
  if (metadata.deletionTimestamp) return
  metadata.deletionTimestamp = kubeTime(context.clock.now())
  if (definition.hasGeneration && metadata.generation !== undefined) metadata.generation += 1
  if (isNamespaceKind(definition.kind))
    draft['status'] = { ...fieldsAt(draft, 'status'), phase: 'Terminating' }
  else metadata.deletionGracePeriodSeconds = 0
}

/** Removes a record for good and tells the hooks; returns the revision of the deletion. */
export async function removeRecord(
  context: RegistryContext,
  definition: KindDefinition,
  record: StoredRecord,
): Promise<number> {
  const last = decodeObject(definition.kind, record)
  const revision = await context.quota.delete(record.key, record.revision)
  for (const hook of context.hooks) {
    if (hook.kind === definition.kind) hook.afterDelete?.(last)
  }
  return revision
}

async function admitDeletion(
  context: RegistryContext,
  { kind }: KindDefinition,
  deletion: Deletion,
  stored: KubeObject,
): Promise<void> {
  const { user, key, dryRun, signal } = deletion
  const { name, namespace = '' } = key
  const about = { user, kind, subresource: '', namespace, name, dryRun }
  await context.admissions.admit({ ...about, operation: 'delete', oldObject: stored }, signal)
}

/** The object as its deletion leaves it: marked if it has to wait, without the finalizers of other policies. */
function draftOf(
  context: RegistryContext,
  definition: KindDefinition,
  deletion: Deletion,
  record: StoredRecord,
): { readonly draft: KubeObject; readonly waits: boolean } {
  const draft = decodeObject(definition.kind, record)
  const finalizers = finalizersFor(draft, deletion.propagationPolicy)
  if (finalizers.length > 0) draft.metadata.finalizers = finalizers
  else delete draft.metadata.finalizers
  const waits = isHeld(definition.kind, draft)
  if (waits || definition.marksDeleted) markDeleted(context, definition, draft)
  return { draft, waits }
}

async function attemptDeletion(
  context: RegistryContext,
  definition: KindDefinition,
  deletion: Deletion,
  record: StoredRecord,
): Promise<DeletionResult> {
  const stored = decodeObject(definition.kind, record)
  checkPreconditions(definition, stored, deletion.preconditions)
  await admitDeletion(context, definition, deletion, stored)
  const { draft, waits } = draftOf(context, definition, deletion, record)
  if (deletion.dryRun) return { gone: !waits, object: draft }
  if (!waits) {
    const revision = await removeRecord(context, definition, record)
    draft.metadata.resourceVersion = String(revision)
    return { gone: true, object: draft }
  }
  const value = encodeObject(draft)
  if (!value.equals(record.value)) {
    const written = await context.quota.markDeleted(record, value)
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
