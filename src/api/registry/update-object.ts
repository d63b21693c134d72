import {
  conflict,
  invalid,
  type Key,
  type KubeObject,
  notFound,
  objectModified,
} from '../../core/index.ts'
import { RevisionMismatch, type StoredRecord } from '../../storage/index.ts'
import type { KindDefinition, Subresource } from '../kinds/kind-definition.ts'
import {
  toCause,
  validateMetadata,
  validateMetadataUpdate,
  validateUpdate,
} from '../validation/index.ts'
import type { WriteResult } from './create-object.ts'
import { removeRecord } from './delete-object.ts'
import { storeKey } from './keys.ts'
import { decodeObject, encodeObject } from './object-bytes.ts'
import type { RegistryContext, WriteOptions } from './registry-context.ts'

/** How often a change that names no resourceVersion is tried again when others write in between. */
const unconditionalAttempts = 16

/** A change of a stored object. */
export interface Change extends WriteOptions {
  readonly key: Key
  readonly subresource?: Subresource
  /** Makes the new object from the stored one, which it may change in place; runs once per attempt. */
  readonly mutate: (stored: KubeObject) => KubeObject | Promise<KubeObject>
  readonly signal: AbortSignal
}

function requireSameObject(definition: KindDefinition, sent: KubeObject, stored: KubeObject): void {
  const { name } = stored.metadata
  if (sent.metadata.uid && sent.metadata.uid !== stored.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${sent.metadata.uid}, UID in object meta: ${stored.metadata.uid}`
    throw conflict(definition.kind, name, why)
  }
  const { resourceVersion } = sent.metadata
  if (resourceVersion && resourceVersion !== stored.metadata.resourceVersion)
    throw objectModified(definition.kind, name)
}

/** What the sender of an update cannot change, whatever they sent. */
function carryOver(definition: KindDefinition, draft: KubeObject, stored: KubeObject): void {
  const { metadata } = draft
  const old = stored.metadata
  metadata.name = old.name
  // Whoever names no version means the newest, except for kinds too delicate for that.
  if (!metadata.resourceVersion && !definition.conditionalUpdateOnly && old.resourceVersion)
    metadata.resourceVersion = old.resourceVersion
  if (old.namespace !== undefined) metadata.namespace = old.namespace
  if (old.uid !== undefined) metadata.uid = old.uid
  if (!metadata.creationTimestamp && old.creationTimestamp !== undefined)
    metadata.creationTimestamp = old.creationTimestamp
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (old[field] === undefined) delete metadata[field]
    else Object.assign(metadata, { [field]: old[field] })
  }
  delete (metadata as { managedFields?: unknown }).managedFields
  delete (metadata as { selfLink?: unknown }).selfLink
  if (old.generation !== undefined) metadata.generation = old.generation
  else if (!definition.hasGeneration) delete metadata.generation
}

function countGeneration(definition: KindDefinition, draft: KubeObject, stored: KubeObject): void {
  if (!definition.hasGeneration) return
  const changed = definition.isNewGeneration
    ? definition.isNewGeneration(draft, stored)
    : JSON.stringify(draft['spec']) !== JSON.stringify(stored['spec'])
  draft.metadata.generation = (stored.metadata.generation ?? 1) + (changed ? 1 : 0)
}

function prepareDraft(
  context: RegistryContext,
  definition: KindDefinition,
  change: Change,
  objects: {
    readonly sent: KubeObject
    readonly stored: KubeObject
    readonly record: StoredRecord
  },
): KubeObject {
  const { sent, stored } = objects
  const { subresource, user } = change
  const writing = { user, clock: context.clock }
  const draft = subresource
    ? subresource.merge(sent, decodeObject(definition.kind, objects.record), writing)
    : sent
  carryOver(definition, draft, stored)
  definition.applyDefaults(draft)
  if (!subresource) definition.prepareUpdate(draft, stored, writing)
  countGeneration(definition, draft, stored)
  const problems = subresource
    ? [
        ...validateMetadata(draft, definition),
        ...validateMetadataUpdate(draft, stored),
        ...(subresource.validate?.(draft, stored) ?? []),
      ]
    : validateUpdate(definition, draft, stored, change.allowances)
  if (problems.length > 0)
    throw invalid(definition.kind, draft.metadata.name, problems.map(toCause))
  return draft
}

async function admit(
  context: RegistryContext,
  definition: KindDefinition,
  change: Change,
  objects: { readonly draft: KubeObject; readonly stored: KubeObject },
): Promise<void> {
  for (const admission of context.admissions) {
    await admission(
      {
        user: change.user,
        operation: 'update',
        kind: definition.kind,
        subresource: change.subresource?.name ?? '',
        namespace: change.key.namespace ?? '',
        name: change.key.name,
        object: objects.draft,
        oldObject: objects.stored,
        dryRun: change.dryRun,
      },
      change.signal,
    )
  }
}

/** An object that waits for nothing any more after its deletion was asked for. */
function isFinished(draft: KubeObject): boolean {
  if (!draft.metadata.deletionTimestamp || draft.metadata.finalizers?.length) return false
  const spec = draft['spec'] as { finalizers?: unknown[] } | undefined
  return draft.kind !== 'Namespace' || !spec?.finalizers?.length
}

async function storeChange(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  before: { readonly record: StoredRecord; readonly stored: KubeObject },
): Promise<WriteResult> {
  const { record, stored } = before
  const hooks = context.hooks.filter((hook) => hook.kind === definition.kind)
  const undo = hooks.map((hook) => hook.beforeStore?.(draft, stored))
  const value = encodeObject(draft)
  // An update that changes nothing is not written: no revision, no event, as in Kubernetes.
  if (value.equals(record.value)) return { object: stored, record }
  try {
    const written = await context.store.update(record.key, value, record.revision)
    for (const hook of hooks) hook.afterStore?.(draft, stored)
    draft.metadata.resourceVersion = String(written.revision)
    return { object: draft, record: written }
  } catch (cause) {
    for (const revert of undo) revert?.()
    throw cause
  }
}

async function attemptChange(
  context: RegistryContext,
  definition: KindDefinition,
  change: Change,
  record: StoredRecord,
): Promise<{ readonly result: WriteResult } | { readonly conditional: boolean }> {
  const stored = decodeObject(definition.kind, record)
  const sent = await change.mutate(decodeObject(definition.kind, record))
  requireSameObject(definition, sent, stored)
  const conditional = sent.metadata.resourceVersion !== undefined
  const draft = prepareDraft(context, definition, change, { sent, stored, record })
  await admit(context, definition, change, { draft, stored })
  if (change.dryRun) return { result: { object: { ...draft } } }
  try {
    if (isFinished(draft)) {
      await removeRecord(context, definition, record)
      return { result: { object: draft } }
    }
    return { result: await storeChange(context, definition, draft, { record, stored }) }
  } catch (error) {
    if (error instanceof RevisionMismatch) return { conditional }
    throw error
  }
}

/** Changes a stored object; a change that names no resourceVersion is repeated on the newest object. */
export async function updateObject(
  context: RegistryContext,
  definition: KindDefinition,
  change: Change,
): Promise<WriteResult> {
  const { name } = change.key
  for (let attempt = 1; attempt <= unconditionalAttempts; attempt++) {
    const record = context.store.get(storeKey(definition.kind, change.key))
    if (!record) throw notFound(definition.kind, name)
    const outcome = await attemptChange(context, definition, change, record)
    if ('result' in outcome) return outcome.result
    if (outcome.conditional) throw objectModified(definition.kind, name)
  }
  throw objectModified(definition.kind, name)
}
