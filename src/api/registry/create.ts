import { randomInt } from 'node:crypto'
import {
  alreadyExists,
  badRequest,
  hasReason,
  invalid,
  type KubeObject,
  kubeTime,
  type UserInfo,
  type WriteAttempt,
} from '../../core/index.ts'
import { KeyExists } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { causesOf, validateCreate } from '../validation/index.ts'
import { requireLivingNamespace } from './namespace-lifecycle.ts'
import { encodeObject, storeKey } from './object-bytes.ts'
import { dropUnkept } from './prepare-update.ts'
import type { RegistryContext, WriteOptions, WriteResult } from './registry.ts'
import { assignBeforeStore } from './service-addresses.ts'

// The alphabet that Kubernetes uses for generated names: no vowels, no look-alikes.
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
const maxNameLength = 63

/** A name that begins with `base` and ends by chance. */
function generatedName(base: string): string {
  let name = base.slice(0, maxNameLength - suffixLength)
  for (let i = 0; i < suffixLength; i++) name += suffixAlphabet[randomInt(suffixAlphabet.length)]
  return name
}

/** How many names are tried for an object that leaves its name to us. */
const generateAttempts = 8

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
  dropUnkept(metadata)
  metadata.uid = context.newUid()
  metadata.creationTimestamp = kubeTime(context.clock.now())
  if (definition.hasGeneration) metadata.generation = 1
  const problems = validateCreate(definition, draft, options.allowances)
  if (problems.length > 0) throw invalid(definition.kind, metadata.name, causesOf(problems))
  if (metadata.resourceVersion && metadata.resourceVersion !== '0')
    throw badRequest('resourceVersion should not be set on objects to be created')
  delete metadata.resourceVersion
}

async function storeNew(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  user: UserInfo,
): Promise<WriteResult> {
  const { kind } = definition
  const assigned = assignBeforeStore(context, kind, draft, undefined)
  try {
    const { name } = draft.metadata
    const key = storeKey(kind, draft.metadata)
    const record = await context.quota.create(key, encodeObject(draft), { user, kind, name })
    assigned.keep()
    draft.metadata.resourceVersion = String(record.revision)
    return { object: draft, record }
  } catch (cause) {
    assigned.undo()
    if (cause instanceof KeyExists) throw alreadyExists(kind, draft.metadata.name)
    throw cause
  }
}

const attemptOf = (
  { kind }: KindDefinition,
  draft: KubeObject,
  who: Pick<WriteAttempt, 'user' | 'dryRun'>,
): WriteAttempt => ({
  ...who,
  operation: 'create',
  kind,
  subresource: '',
  namespace: draft.metadata.namespace ?? '',
  name: draft.metadata.name,
  object: draft,
})

/** Stores under the name given or, where that was left to us, under another one if it is taken. */
async function storeUnderFreeName(
  context: RegistryContext,
  definition: KindDefinition,
  draft: KubeObject,
  options: { readonly user: UserInfo; readonly generateFrom: string },
): Promise<WriteResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await storeNew(context, definition, draft, options.user)
    } catch (error) {
      const taken = hasReason(error, 'AlreadyExists')
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
  options: WriteOptions,
): Promise<WriteResult> {
  const { metadata } = draft
  const { user, dryRun, signal } = options
  const generateFrom = metadata.name ? '' : (metadata.generateName ?? '')
  if (generateFrom) metadata.name = generatedName(generateFrom)
  requireLivingNamespace(context, definition, draft)
  prepareDraft(context, definition, draft, options)
  await context.admissions.admit(attemptOf(definition, draft, { user, dryRun }), signal)
  // Once more: an admission may have taken its time, and the namespace has gone meanwhile.
  requireLivingNamespace(context, definition, draft)
  if (!dryRun) return storeUnderFreeName(context, definition, draft, { user, generateFrom })
  if (context.store.get(storeKey(definition.kind, metadata)))
    throw alreadyExists(definition.kind, metadata.name)
  assignBeforeStore(context, definition.kind, draft, undefined).undo()
  return { object: draft }
}
