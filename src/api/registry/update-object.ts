import { isDeepStrictEqual } from 'node:util'
import {
  type ApiError,
  conflict,
  invalid,
  type Key,
  type Kind,
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
import { assignBeforeStore } from './assign-before-store.ts'
import type { WriteResult } from './create-object.ts'
import { removeRecord } from './delete-object.ts'
import { storeKey } from './keys.ts'
import { decodeObject, encodeObject } from './object-bytes.ts'
import type { RegistryContext, WriteOptions } from './registry-context.ts'

/** How often a change that names no resourceVersion is tried when others write in between. */
const maxAttempts = 16

/** A change of a stored object. */
export interface Change extends WriteOptions {
  readonly key: Key
  readonly subresource?: Subresource
  /** Makes the new object from the stored one, which it may change in place; runs once per attempt. */
  readonly mutate: (stored: KubeObject) => KubeObject | Promise<KubeObject>
  readonly signal: AbortSignal
}

/** Refuses an update of an object that has been made anew under the same name since it was read. */
export function requireSameUid(kind: Kind, sent: KubeObject, stored: KubeObject): void {
  const { name, uid } = stored.metadata
  if (!sent.metadata.uid || sent.metadata.uid === uid) return
  const why = `Precondition failed: UID in precondition: ${sent.metadata.uid}, UID in object meta: ${uid}`
  throw conflict(kind, name, why)
}

/** Whoever names no version means the newest, except for kinds too delicate for that. */
function settleVersion(
  { kind, ...definition }: KindDefinition,
  sent: KubeObject,
  stored: KubeObject,
): void {
  const { name, resourceVersion: current = '' } = stored.metadata
  const { resourceVersion: asked = '' } = sent.metadata
  if (asked === '' || asked === '0') {
    if (definition.conditionalUpdateOnly) throw versionIsMissing(kind, name)
    sent.metadata.resourceVersion = current
  } else if (asked !== current) throw objectModified(kind, name)
}

const versionIsMissing = (kind: Kind, name: string): ApiError =>
  invalid({ group: kind.group, kind: kind.resource }, name, [
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: 0: must be specified for an update',
      field: 'metadata.resourceVersion',
    },
  ])

/** What the sender of an update cannot change, whatever they sent. */
function carryOver(definition: KindDefinition, draft: KubeObject, stored: KubeObject): void {
  const { metadata } = draft
  const old = stored.metadata
  metadata.name = old.name
  if (old.namespace !== undefined) metadata.namespace = old.namespace
  if (!metadata.uid && old.uid !== undefined) metadata.uid = old.uid
  if (old.creationTimestamp !== undefined) metadata.creationTimestamp = old.creationTimestamp
  // Nobody takes a deletion back; a live object that is said to be deleted fails validation.
  if (old.deletionTimestamp !== undefined) metadata.deletionTimestamp = old.deletionTimestamp
  if (old.deletionGracePeriodSeconds !== undefined)
    metadata.deletionGracePeriodSeconds ??= old.deletionGracePeriodSeconds
  delete (metadata as { managedFields?: unknown }).managedFields
  delete (metadata as { selfLink?: unknown }).selfLink
  if (old.generation !== undefined) metadata.generation = old.generation
  else if (!definition.hasGeneration) delete metadata.generation
}

function countGeneration(definition: KindDefinition, draft: KubeObject, stored: KubeObject): void {
  if (!definition.hasGeneration) return
  const changed = definition.isNewGeneration
    ? definition.isNewGeneration(draft, stored)
    : !isDeepStrictEqual(draft['spec'], stored['spec'])
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

/** Equal but for the order of fields, which does not change how many bytes an object has. */
function isUnchanged(kind: Kind, value: Buffer, { record, stored }: Before): boolean {
  if (value.length !== record.value.length) return false
  if (value.equals(record.value)) return true
  return isDeepStrictEqual(decodeObject(kind, { ...record, value }), stored)
}

/** The object as it is before a change. */
interface Before {
  readonly record: StoredRecord
  readonly stored: KubeObject
}

async function storeChange(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  before: Before,
): Promise<WriteResult> {
  const { record, stored } = before
  const assigned = assignBeforeStore(context, definition.kind, draft, stored)
  const value = encodeObject(draft)
  // An update that changes nothing is not written: no revision, no event, as in Kubernetes.
  if (isUnchanged(definition.kind, value, before)) {
    assigned.undo()
    return { object: stored, record }
  }
  try {
    const written = await context.store.update(record.key, value, record.revision)
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
  const stored = decodeObject(definition.kind, record)
  const sent = await change.mutate(decodeObject(definition.kind, record))
  settleVersion(definition, sent, stored)
  const draft = prepareDraft(context, definition, change, { sent, stored, record })
  await admit(context, definition, change, { draft, stored })
  if (change.dryRun) {
    assignBeforeStore(context, definition.kind, draft, stored).undo()
    return { object: draft }
  }
  try {
    if (!isFinished(draft)) return await storeChange(context, definition, draft, { record, stored })
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
