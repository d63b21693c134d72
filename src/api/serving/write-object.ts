import { ApiError, badRequest, invalid, type KubeObject } from '../../core/index.ts'
import type { ParsedJson } from '../content/index.ts'
import { applyPatch, type PatchType, patchTypeOf } from '../patch/index.ts'
import { createObject, type WriteResult } from '../registry/create-object.ts'
import { type Change, updateObject } from '../registry/update-object.ts'
import { schemaOf } from '../schema/index.ts'
import { type ApiCall, keyOfCall } from './api-call.ts'
import { decodePatch, decodePatched, decodeSent, type Sent } from './decode-sent.ts'
import { sendObject, sendRecord } from './read-object.ts'
import { warn } from './warn.ts'

/** True for `dryRun=All`; throws a 422 for any other value. */
export function isDryRun(call: ApiCall): boolean {
  const values = call.info.query.getAll('dryRun')
  const wrong = values.find((value) => value !== 'All' && value !== '')
  if (wrong !== undefined)
    throw invalid({ group: 'meta.k8s.io', kind: 'CreateOptions' }, '', [
      {
        reason: 'FieldValueNotSupported',
        message: `Unsupported value: ${JSON.stringify(wrong)}: supported values: "All"`,
        field: 'dryRun',
      },
    ])
  return values.includes('All')
}

async function sendResult(call: ApiCall, code: number, result: WriteResult): Promise<void> {
  warn(call, call.resource.definition.warnings?.(result.object) ?? [])
  if (result.record) await sendRecord(call, code, result.record)
  else await sendObject(call, code, result.object)
}

/** Puts the URL's namespace into the object, and refuses one that differs. */
function placeInNamespace(call: ApiCall, object: KubeObject): void {
  const { kind } = call.resource.definition
  const { namespace } = call.info
  if (!kind.namespaced) {
    if (object.metadata.namespace === '') delete object.metadata.namespace
    return
  }
  if (object.metadata.namespace && object.metadata.namespace !== namespace)
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  object.metadata.namespace = namespace
}

/** POST to a collection. */
export async function handleCreate(call: ApiCall): Promise<void> {
  const dryRun = isDryRun(call)
  const { definition } = call.resource
  if (definition.kind.namespaced && call.info.namespace === '')
    throw new ApiError(
      'MethodNotAllowed',
      'the server does not allow this method on the requested resource',
    )
  const sent = await decodeSent(call, definition.kind, 'CreateOptions')
  placeInNamespace(call, sent.object)
  warn(call, sent.warnings)
  const { context, user, signal } = call
  const result = await createObject(context, definition, sent.object, { user, dryRun, signal })
  await sendResult(call, 201, result)
}

function subresourceOf(call: ApiCall): Pick<Change, 'subresource'> {
  const { subresources } = call.resource.definition
  const subresource = subresources.find(({ name }) => name === call.info.subresource)
  return subresource ? { subresource } : {}
}

function requireUrlName(call: ApiCall, object: KubeObject): void {
  const { name } = call.info
  if (object.metadata.name === name) return
  throw badRequest(
    `the name of the object (${object.metadata.name}) does not match the name on the URL (${name})`,
  )
}

const mayCreate = (call: ApiCall): boolean =>
  call.info.subresource === '' && call.resource.definition.createOnUpdate === true

/** PUT of an object or one of its subresources. */
export async function handleUpdate(call: ApiCall): Promise<void> {
  const dryRun = isDryRun(call)
  const { context, user, signal } = call
  const { definition } = call.resource
  const sent = await decodeSent(call, definition.kind, 'UpdateOptions')
  placeInNamespace(call, sent.object)
  requireUrlName(call, sent.object)
  warn(call, sent.warnings)
  const options = { user, dryRun, signal }
  try {
    const result = await updateObject(context, definition, {
      ...options,
      ...subresourceOf(call),
      key: keyOfCall(call),
      mutate: () => structuredClone(sent.object),
    })
    await sendResult(call, 200, result)
  } catch (error) {
    const absent = error instanceof ApiError && error.reason === 'NotFound'
    if (!absent || !mayCreate(call)) throw error
    delete sent.object.metadata.resourceVersion
    await sendResult(call, 201, await createObject(context, definition, sent.object, options))
  }
}

/** Applies a patch to the stored object and reads the outcome as strictly as if it had been sent. */
function patched(call: ApiCall, type: PatchType, patch: ParsedJson, stored: KubeObject): Sent {
  const { kind } = call.resource.definition
  const schema = schemaOf(kind)
  if (!schema) throw new Error(`no schema for ${kind.kind}`)
  const sent = decodePatched(call, applyPatch(type, patch.value, stored, schema), patch)
  if (sent.object.metadata.name !== stored.metadata.name)
    throw badRequest(
      `the name of the object (${sent.object.metadata.name}) does not match the name on the URL (${stored.metadata.name})`,
    )
  return sent
}

/** PATCH of an object or one of its subresources. */
export async function handlePatch(call: ApiCall): Promise<void> {
  const dryRun = isDryRun(call)
  const type = patchTypeOf(call.request.headers['content-type'])
  const patch = await decodePatch(call)
  const { context, user, signal, resource } = call
  const warnings = new Set<string>()
  const result = await updateObject(context, resource.definition, {
    user,
    dryRun,
    signal,
    ...subresourceOf(call),
    key: keyOfCall(call),
    mutate: (stored) => {
      const before = stored.metadata.resourceVersion
      const sent = patched(call, type, patch, stored)
      for (const text of sent.warnings) warnings.add(text)
      // A version that the patch does not state is not a condition: the patch may be tried again.
      if (sent.object.metadata.resourceVersion === before)
        delete sent.object.metadata.resourceVersion
      return sent.object
    },
  })
  warn(call, [...warnings])
  await sendResult(call, 200, result)
}
