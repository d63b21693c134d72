import { ApiError, badRequest, hasReason, isRecord, type KubeObject } from '../../core/index.ts'
import {
  decodeBody,
  decodeOptions,
  type FieldValidation,
  type ParsedJson,
  type PatchedOptions,
  parseJson,
  readPatched,
} from '../content/index.ts'
import { applyPatch, type PatchType, patchTypeOf } from '../patch/index.ts'
import { createObject } from '../registry/create.ts'
import { requireSameUid } from '../registry/prepare-update.ts'
import type { WriteResult } from '../registry/registry.ts'
import { type Change, updateObject } from '../registry/update.ts'
import { type GroupVersionKind, schemaOf } from '../schema/index.ts'
import { type ApiCall, keyOfCall, placeInNamespace, warn, writeParametersOf } from './call.ts'
import { sendObject, sendRecord } from './get.ts'

/** An object out of a request, and what its sender should be warned about. */
export interface Sent {
  readonly object: KubeObject
  readonly warnings: readonly string[]
}

/** The structure check has seen to the types; what is absent is filled in so that nobody has to ask. */
function asKubeObject(decoded: Record<string, unknown>, expected: GroupVersionKind): KubeObject {
  const metadata = isRecord(decoded['metadata']) ? decoded['metadata'] : {}
  if (metadata['creationTimestamp'] === null) delete metadata['creationTimestamp']
  if (metadata['name'] === undefined) metadata['name'] = ''
  const { group, version, kind } = expected
  return {
    ...decoded,
    kind,
    apiVersion: group ? `${group}/${version}` : version,
    metadata: metadata as unknown as KubeObject['metadata'],
  }
}

/** Decodes an object of the expected kind; throws a 400 or 415 that says what is wrong with it. */
export async function decodeSentBytes(
  bytes: Buffer,
  expected: GroupVersionKind,
  how: {
    readonly contentType: string | undefined
    readonly fieldValidation: FieldValidation
  },
): Promise<Sent> {
  const { group, version, kind } = expected
  const { object, warnings } = await decodeBody(bytes, how.contentType, {
    expected: { group, version, kind },
    fieldValidation: how.fieldValidation,
  })
  return { object: asKubeObject(object, expected), warnings }
}

/** Decodes the object in the body of a create or update. */
async function decodeSent(
  call: ApiCall,
  expected: GroupVersionKind,
  fieldValidation: FieldValidation,
): Promise<Sent> {
  const contentType = call.request.headers['content-type']
  return decodeSentBytes(await call.readBody(), expected, { contentType, fieldValidation })
}

/** The patch in the body of a request. */
async function decodePatch(call: ApiCall, type: PatchType): Promise<ParsedJson> {
  const bytes = await call.readBody()
  try {
    return parseJson(bytes)
  } catch (error) {
    if (!(error instanceof ApiError) || type === 'strategic') throw error
    throw badRequest(`error decoding patch: ${error.message}`)
  }
}

/** Decodes what a patch has made of an object, as strictly as if it had been sent. */
function decodePatched(
  call: ApiCall,
  outcome: Record<string, unknown>,
  options: Omit<PatchedOptions, 'expected'>,
): Sent {
  const { group, version, kind } = call.resource.definition.kind
  const expected = { group, version, kind }
  const { object, warnings } = readPatched(outcome, { ...options, expected })
  return { object: asKubeObject(object, expected), warnings }
}

const deleteOptions: GroupVersionKind = { group: '', version: 'v1', kind: 'DeleteOptions' }

/** The DeleteOptions in the body of a request; `undefined` when there is no body. */
export async function decodeDeleteOptions(
  call: ApiCall,
): Promise<Record<string, unknown> | undefined> {
  const bytes = await call.readBody()
  if (bytes.length === 0) return undefined
  return decodeOptions(bytes, call.request.headers['content-type'], deleteOptions)
}

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
