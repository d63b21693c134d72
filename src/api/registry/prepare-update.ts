import { isDeepStrictEqual } from 'node:util'
import {
  type ApiError,
  conflict,
  invalid,
  type Kind,
  type KubeObject,
  type ObjectMeta,
  objectModified,
} from '../../core/index.ts'
import type { StoredRecord } from '../../storage/index.ts'
import type { KindDefinition, Subresource } from '../kinds/define-kind.ts'
import {
  causesOf,
  type FieldProblem,
  validateMetadata,
  validateMetadataUpdate,
  validateUpdate,
} from '../validation/index.ts'
import { decodeObject } from './object-bytes.ts'
import type { RegistryContext, WriteOptions } from './registry.ts'

const unkept = ['managedFields', 'selfLink'] as const

/** Drops what clients may send in metadata and nobody keeps here. */
export function dropUnkept(metadata: ObjectMeta): void {
  for (const field of unkept) Reflect.deleteProperty(metadata, field)
}

/** An object as it is before a change. */
export interface Before {
  readonly record: StoredRecord
  readonly stored: KubeObject
}

/** Refuses an update of an object that has been made anew under the same name since it was read. */
export function requireSameUid(kind: Kind, sent: KubeObject, stored: KubeObject): void {
  const { name, uid } = stored.metadata
  if (!sent.metadata.uid || sent.metadata.uid === uid) return
  const why = `Precondition failed: UID in precondition: ${sent.metadata.uid}, UID in object meta: ${uid}`
  throw conflict(kind, name, why)
}

const versionIsMissing = (kind: Kind, name: string): ApiError =>
  invalid({ group: kind.group, kind: kind.resource }, name, [
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: 0: must be specified for an update',
      field: 'metadata.resourceVersion',
    },
  ])

/** Whoever names no version means the newest, except for kinds too delicate for that. */
function settleVersion(
  { kind, conditionalUpdateOnly }: KindDefinition,
  sent: KubeObject,
  stored: KubeObject,
): void {
  const { name, resourceVersion: current = '' } = stored.metadata
  const { resourceVersion: asked = '' } = sent.metadata
  if (asked === '' || asked === '0') {
    if (conditionalUpdateOnly) throw versionIsMissing(kind, name)
    sent.metadata.resourceVersion = current
  } else if (asked !== current) throw objectModified(kind, name)
}

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
  dropUnkept(metadata)
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

/** A subresource checks its own part; the rest of the object is as it was. */
const subresourceProblems = (
  definition: KindDefinition,
  { validate }: Subresource,
  draft: KubeObject,
  stored: KubeObject,
): FieldProblem[] => [
  ...validateMetadata(draft, definition),
  ...validateMetadataUpdate(draft, stored),
  ...(validate?.(draft, stored) ?? []),
]

/** Makes of what was sent the object to store: completed, checked, and nothing in it that is not the sender's to change. */
export function prepareUpdate(
  context: RegistryContext,
  definition: KindDefinition,
  change: WriteOptions & { readonly subresource?: Subresource; readonly sent: KubeObject },
  { record, stored }: Before,
): KubeObject {
  const { sent, subresource, user } = change
  const { kind } = definition
  const writing = { user, clock: context.clock }
  settleVersion(definition, sent, stored)
  const draft = subresource ? subresource.merge(sent, decodeObject(kind, record), writing) : sent
  carryOver(definition, draft, stored)
  definition.applyDefaults(draft)
  if (!subresource) definition.prepareUpdate(draft, stored, writing)
  countGeneration(definition, draft, stored)
  const problems = subresource
    ? subresourceProblems(definition, subresource, draft, stored)
    : validateUpdate(definition, draft, stored, change.allowances)
  if (problems.length > 0) throw invalid(kind, draft.metadata.name, causesOf(problems))
  return draft
}
