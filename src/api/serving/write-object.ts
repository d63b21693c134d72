import { badRequest, hasReason, type KubeObject } from '../../core/index.ts'
import type { FieldValidation, ParsedJson } from '../content/index.ts'
import { applyPatch, type PatchType, patchTypeOf } from '../patch/index.ts'
import { createObject } from '../registry/create-object.ts'
import { requireSameUid } from '../registry/prepare-update.ts'
import type { WriteResult } from '../registry/registry-context.ts'
import { type Change, updateObject } from '../registry/update-object.ts'
import { schemaOf } from '../schema/index.ts'
import { type ApiCall, keyOfCall } from './api-call.ts'
import { decodePatch, decodePatched, decodeSent, type Sent } from './decode-sent.ts'
import { placeInNamespace } from './place-in-namespace.ts'
import { sendObject, sendRecord } from './read-object.ts'
import { warn } from './warn.ts'
import { writeParametersOf } from './write-parameters.ts'

async function sendResult(call: ApiCall, code: number, result: WriteResult): Promise<void> {
  warn(call, call.resource.definition.warnings?.(result.object) ?? [])
  if (result.record) await sendRecord(call, code, result.record)
  else await sendObject(call, code, result.object)
}

/** POST to a collection. */
export async function handleCreate(call: ApiCall): Promise<void> {
  const { context, user, signal, info } = call
  const { definition } = call.resource
  const { kind } = definition
  const { dryRun, fieldValidation } = writeParametersOf(info.query, 'CreateOptions')
  const sent = await decodeSent(call, kind, fieldValidation)
  placeInNamespace(kind, info.namespace, sent.object)
  warn(call, sent.warnings)
  const result = await createObject(context, definition, sent.object, { user, dryRun, signal })
  await sendResult(call, 201, result)
}

function subresourceOf(call: ApiCall): Pick<Change, 'subresource'> {
  const { subresources } = call.resource.definition
  const subresource = subresources.find(({ name }) => name === call.info.subresource)
  return subresource ? { subresource } : {}
}

function requireUrlName({ info }: ApiCall, { metadata }: KubeObject): void {
  if (metadata.name === info.name) return
  throw badRequest(
    metadata.name === ''
      ? `the name of the object (${info.name} based on URL) was undeterminable: name must be provided`
      : `the name of the object (${metadata.name}) does not match the name on the URL (${info.name})`,
  )
}

const mayCreate = (call: ApiCall): boolean =>
  call.info.subresource === '' && call.resource.definition.createOnUpdate === true

/** PUT of an object or one of its subresources. */
export async function handleUpdate(call: ApiCall): Promise<void> {
  const { context, user, signal, info } = call
  const { definition } = call.resource
  const { kind } = definition
  const { dryRun, fieldValidation } = writeParametersOf(info.query, 'UpdateOptions')
  const sent = await decodeSent(call, kind, fieldValidation)
  placeInNamespace(kind, info.namespace, sent.object)
  requireUrlName(call, sent.object)
  warn(call, sent.warnings)
  const options = { user, dryRun, signal }
  try {
    const result = await updateObject(context, definition, {
      ...options,
      ...subresourceOf(call),
      key: keyOfCall(call),
      mutate: (stored) => {
        requireSameUid(kind, sent.object, stored)
        return structuredClone(sent.object)
      },
    })
    await sendResult(call, 200, result)
  } catch (error) {
    const absent = hasReason(error, 'NotFound')
    if (!absent || !mayCreate(call)) throw error
    await call.requireVerb('create')
    delete sent.object.metadata.resourceVersion
    await sendResult(call, 201, await createObject(context, definition, sent.object, options))
  }
}

/** A patch as it was sent, and how strictly its outcome is read. */
interface SentPatch {
  readonly type: PatchType
  readonly patch: ParsedJson
  readonly fieldValidation: FieldValidation
}

/** Applies a patch to the stored object and reads the outcome as strictly as if it had been sent. */
function patched(call: ApiCall, sentPatch: SentPatch, stored: KubeObject): Sent {
  const { type, patch, fieldValidation } = sentPatch
  const { kind } = call.resource.definition
  const schema = schemaOf(kind)
  if (!schema) throw new Error(`no schema for ${kind.kind}`)
  const outcome = applyPatch(type, patch.value, stored, schema)
  const sent = decodePatched(call, outcome, {
    fieldValidation,
    patch,
    keepsKind: type === 'strategic',
  })
  return sent
}

/** PATCH of an object or one of its subresources. */
export async function handlePatch(call: ApiCall): Promise<void> {
  const { context, user, signal, resource, info } = call
  const type = patchTypeOf(call.request.headers['content-type'])
  const { dryRun, fieldValidation } = writeParametersOf(info.query, 'PatchOptions')
  const sentPatch = { type, patch: await decodePatch(call, type), fieldValidation }
  let warned: readonly string[] = []
  const result = await updateObject(context, resource.definition, {
    user,
    dryRun,
    signal,
    ...subresourceOf(call),
    key: keyOfCall(call),
    mutate: (stored) => {
      const { object, warnings } = patched(call, sentPatch, stored)
      // A further attempt has the same to say.
      warn(
        call,
        warnings.filter((text) => !warned.includes(text)),
      )
      warned = [...warned, ...warnings]
      requireUrlName(call, object)
      placeInNamespace(resource.definition.kind, info.namespace, object)
      return object
    },
  })
  await sendResult(call, 200, result)
}
