import { randomInt } from 'node:crypto'
import {
  ApiError,
  alreadyExists,
  badRequest,
  invalid,
  type KubeObject,
  kubeTime,
  type UserInfo,
} from '../../core/index.ts'
import { KeyExists, type StoredRecord } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/kind-definition.ts'
import { toCause, validateCreate } from '../validation/index.ts'
import { assignBeforeStore } from './assign-before-store.ts'
import { storeKey } from './keys.ts'
import { requireLivingNamespace } from './namespace-lifecycle.ts'
import { encodeObject } from './object-bytes.ts'
import type { RegistryContext, WriteOptions } from './registry-context.ts'

// The alphabet that Kubernetes uses for generated names: no vowels, no look-alikes.
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
const maxGeneratedBase = 63 - suffixLength
const generateAttempts = 8

function generatedName(base: string): string {
  let name = base.slice(0, maxGeneratedBase)
  for (let i = 0; i < suffixLength; i++) name += suffixAlphabet[randomInt(suffixAlphabet.length)]
  return name
}

/** Who creates, and for how long they wait. */
type CreateOptions = WriteOptions & { readonly signal: AbortSignal }

/** Gives a new object what the server decides, and refuses what is wrong with it. */
function prepareDraft(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  options: WriteOptions,
): void {
  const { metadata } = draft
  definition.applyDefaults(draft)
  definition.prepareCreate(draft, { user: options.user, clock: context.clock })
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete (metadata as { managedFields?: unknown }).managedFields
  delete (metadata as { selfLink?: unknown }).selfLink
  metadata.uid = context.newUid()
  metadata.creationTimestamp = kubeTime(context.clock.now())
  if (definition.hasGeneration) metadata.generation = 1
  const problems = validateCreate(definition, draft, options.allowances)
  if (problems.length > 0) throw invalid(definition.kind, metadata.name, problems.map(toCause))
  if (metadata.resourceVersion && metadata.resourceVersion !== '0')
    throw badRequest('resourceVersion should not be set on objects to be created')
  delete metadata.resourceVersion
}

/** A created object: its record, or for a dry run the object that would have been stored. */
export interface WriteResult {
  readonly object: KubeObject
  readonly record?: StoredRecord
}

async function storeNew(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
): Promise<WriteResult> {
  const assigned = assignBeforeStore(context, definition.kind, draft, undefined)
  try {
    const record = await context.store.create(
      storeKey(definition.kind, draft.metadata),
      encodeObject(draft),
    )
    assigned.keep()
    draft.metadata.resourceVersion = String(record.revision)
    return { object: draft, record }
  } catch (cause) {
    assigned.undo()
    if (cause instanceof KeyExists) throw alreadyExists(definition.kind, draft.metadata.name)
    throw cause
  }
}

async function admit(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  options: CreateOptions,
): Promise<void> {
  for (const admission of context.admissions) {
    await admission(
      {
        user: options.user,
        operation: 'create',
        kind: definition.kind,
        subresource: '',
        namespace: draft.metadata.namespace ?? '',
        name: draft.metadata.name,
        object: draft,
        dryRun: options.dryRun,
      },
      options.signal,
    )
  }
}

/** Stores under the name given or, where that was left to us, under another one if it is taken. */
async function storeUnderFreeName(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  options: { readonly user: UserInfo; readonly generateFrom: string },
): Promise<WriteResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await storeNew(context, definition, draft)
    } catch (error) {
      const taken = error instanceof ApiError && error.reason === 'AlreadyExists'
      if (!options.generateFrom || !taken || attempt === generateAttempts) throw error
      draft.metadata.name = generatedName(options.generateFrom)
      // What follows from the name must follow from the new one.
      definition.prepareCreate(draft, { user: options.user, clock: context.clock })
    }
  }
}

/** Stores a new object. `draft` is decoded, structurally right and belongs to this call. */
export async function createObject(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  options: CreateOptions,
): Promise<WriteResult> {
  const { metadata } = draft
  const generateFrom = metadata.name ? '' : (metadata.generateName ?? '')
  if (generateFrom) metadata.name = generatedName(generateFrom)
  requireLivingNamespace(context, definition, draft)
  prepareDraft(context, definition, draft, options)
  await admit(context, definition, draft, options)
  // Once more: an admission may have taken its time, and the namespace has gone meanwhile.
  requireLivingNamespace(context, definition, draft)
  if (!options.dryRun)
    return storeUnderFreeName(context, definition, draft, { user: options.user, generateFrom })
  if (context.store.get(storeKey(definition.kind, metadata)))
    throw alreadyExists(definition.kind, metadata.name)
  assignBeforeStore(context, definition.kind, draft, undefined).undo()
  return { object: draft }
}
