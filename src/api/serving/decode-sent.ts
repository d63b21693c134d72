import { ApiError, badRequest, isRecord, type KubeObject } from '../../core/index.ts'
import {
  decodeBody,
  decodeOptions,
  type FieldValidation,
  type ParsedJson,
  type PatchedOptions,
  parseJson,
  readPatched,
} from '../content/index.ts'
import type { PatchType } from '../patch/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import type { ApiCall } from './api-call.ts'

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
export async function decodeSent(
  call: ApiCall,
  expected: GroupVersionKind,
  fieldValidation: FieldValidation,
): Promise<Sent> {
  const contentType = call.request.headers['content-type']
  return decodeSentBytes(await call.readBody(), expected, { contentType, fieldValidation })
}

/** The patch in the body of a request. */
export async function decodePatch(call: ApiCall, type: PatchType): Promise<ParsedJson> {
  const bytes = await call.readBody()
  try {
    return parseJson(bytes)
  } catch (error) {
    if (!(error instanceof ApiError) || type === 'strategic') throw error
    throw badRequest(`error decoding patch: ${error.message}`)
  }
}

/** Decodes what a patch has made of an object, as strictly as if it had been sent. */
export function decodePatched(
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
