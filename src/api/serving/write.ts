import { badRequest, hasReason, isRecord, type KubeObject } from '../../core/index.ts'
import type { DecodedBody, FieldValidation } from '../content/index.ts'
import { patchTypeOf } from '../patch/index.ts'
import { createObject } from '../registry/create.ts'
import { requireSameUid } from '../registry/prepare-update.ts'
import type { WriteResult } from '../registry/registry.ts'
import { type Change, updateObject } from '../registry/update.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import {
  type ApiCall,
  type BodyCall,
  keyOfCall,
  placeInNamespace,
  warn,
  writeParametersOf,
} from './call.ts'
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

/** Decodes the object in the body of a request; throws a 400, 413 or 415 that says what is wrong with it. */
export async function decodeSent(
  call: BodyCall,
  { group, version, kind }: GroupVersionKind,
  fieldValidation: FieldValidation,
): Promise<Sent> {
  const { request, signal, bodies } = call
  const expected = { group, version, kind }
  const bytes = await bodies.read(request, signal)
  const contentType = request.headers['content-type']
  const job = { type: 'object', bytes, contentType, expected, fieldValidation } as const
  const { object, warnings } = await bodies.decode(job, call)
  return { object: asKubeObject(object, expected), warnings }
}

const deleteOptions: GroupVersionKind = { group: '', version: 'v1', kind: 'DeleteOptions' }

/** The DeleteOptions in the body of a request; `undefined` when there is no body. */
export async function decodeDeleteOptions(
  call: ApiCall,
): Promise<Record<string, unknown> | undefined> {
  const { request, signal, bodies } = call
  const bytes = await bodies.read(request, signal)
  if (bytes.length === 0) return undefined
  const { object } = await bodies.decode(
    {
      type: 'options',
      bytes,
      contentType: request.headers['content-type'],
      expected: deleteOptions,
      fieldValidation: 'Ignore',
    },
    call,
  )
  return object
}

async function sendResult(call: ApiCall, code: number, result: WriteResult): Promise<void> {
  warn(call, call.resource.definition.warnings?.(result.object) ?? [])
  warn(call, call.context.quota.warnings(result.object.metadata.namespace ?? ''))
  if (result.record) await sendRecord(call, code, result.record)
  else await sendObject(call, code, result.object)
}

/** Charges the work that a change does before it waits for the store: defaults, validation, encoding. */
function charged<T>(call: ApiCall, change: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const changing = change()
  call.bodies.charge(call.owner, performance.now() - startedAt)
  return changing
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
  const options = { user, dryRun, signal }
  const creation = charged(call, () => createObject(context, definition, sent.object, options))
  await sendResult(call, 201, await creation)
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
  // An attempt changes what it is given; further ones begin with what was sent.
  const asSent = JSON.stringify(sent.object)
  let first: KubeObject | undefined = sent.object
  const next = (): KubeObject => {
    const object: KubeObject = first ?? JSON.parse(asSent)
    first = undefined
    return object
  }
  try {
    const change: Change = {
      ...options,
      ...subresourceOf(call),
      key: keyOfCall(call),
      mutate: (stored) => {
        requireSameUid(kind, sent.object, stored)
        return next()
      },
    }
    const changing = charged(call, () => updateObject(context, definition, change))
    await sendResult(call, 200, await changing)
  } catch (error) {
    const absent = hasReason(error, 'NotFound')
    if (!absent || !mayCreate(call)) throw error
    await call.requireVerb('create')
    const object = next()
    delete object.metadata.resourceVersion
    await sendResult(call, 201, await createObject(context, definition, object, options))
  }
}

/** PATCH of an object or one of its subresources. */
export async function handlePatch(call: ApiCall): Promise<void> {
  const { context, user, signal, resource, info, request, bodies } = call
  const type = patchTypeOf(request.headers['content-type'])
  const { dryRun, fieldValidation } = writeParametersOf(info.query, 'PatchOptions')
  const patch = bodies.openPatch(type, await bodies.read(request, signal), fieldValidation)
  const { group, version, kind } = resource.definition.kind
  const expected = { group, version, kind }
  const warned = new Set<string>()
  const take = ({ object: outcome, warnings }: DecodedBody): KubeObject => {
    const object = asKubeObject(outcome, expected)
    // A further attempt has the same to say.
    warn(
      call,
      warnings.filter((text) => !warned.has(text)),
    )
    for (const text of warnings) warned.add(text)
    requireUrlName(call, object)
    placeInNamespace(resource.definition.kind, info.namespace, object)
    return object
  }
  const change: Change = {
    user,
    dryRun,
    signal,
    ...subresourceOf(call),
    key: keyOfCall(call),
    mutate: (stored) => {
      const outcome = bodies.patch(patch, stored, expected, call)
      return outcome instanceof Promise ? outcome.then(take) : take(outcome)
    },
  }
  const changing = charged(call, () => updateObject(context, resource.definition, change))
  await sendResult(call, 200, await changing)
}
