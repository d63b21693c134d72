import { ApiError, badRequest } from '../../core/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import { structOf } from '../schema/schema-of.ts'
import { checkedObject, type DecodedBody, type DecodedValue } from './checked-object.ts'
import type { FieldValidation } from './field-validation.ts'
import { parseJson } from './json-text.ts'
import { bodyMediaType } from './media-types.ts'
import { decodeMessage } from './protobuf/decode-message.ts'
import { openEnvelope } from './protobuf/envelope.ts'
import { actualKind, cannotBeHandled, checkKind, readTypeMeta, type TypeMeta } from './type-meta.ts'
import { parseYaml } from './yaml-text.ts'

/** What a body is decoded as. */
export interface DecodeOptions {
  /** The kind that the URL calls for; a body without `kind` and `apiVersion` is taken for it. */
  readonly expected: GroupVersionKind
  /** `Warn` when not given. */
  readonly fieldValidation?: FieldValidation
  readonly maxDepth?: number
}

/** A body whose encoding is understood and whose kind is known. */
interface OpenedBody {
  readonly typeMeta: TypeMeta
  /** Decodes the rest; for protobuf that needs to know the kind first. */
  readonly decode: () => DecodedValue
}

function openJson(bytes: Uint8Array, maxDepth?: number): OpenedBody {
  try {
    const json = parseJson(bytes, maxDepth)
    const typeMeta = readTypeMeta(json.value)
    return { typeMeta, decode: () => ({ value: json.value, json }) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`)
  }
}

async function openYaml(bytes: Uint8Array, maxDepth?: number): Promise<OpenedBody> {
  const json = await parseYaml(bytes, maxDepth)
  const typeMeta = readTypeMeta(json.value)
  const problems = json.duplicates.map((duplicate) => `yaml: ${duplicate}`)
  return { typeMeta, decode: () => ({ value: json.value, json, problems }) }
}

function openProtobuf(bytes: Uint8Array, expected: GroupVersionKind): OpenedBody {
  const { message, ...typeMeta } = openEnvelope(bytes)
  return { typeMeta, decode: () => ({ value: decodeMessage(message, structOf(expected)) }) }
}

async function openBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  { expected, maxDepth }: DecodeOptions,
): Promise<OpenedBody> {
  const mediaType = bodyMediaType(contentType)
  try {
    if (mediaType === 'application/json') return openJson(bytes, maxDepth)
    if (mediaType === 'application/yaml') return await openYaml(bytes, maxDepth)
    return openProtobuf(bytes, expected)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    // The bytes themselves are not shown, as Kubernetes does: they may hold a credential.
    const size = bytes.length === 0 ? '<empty>' : `${bytes.length} bytes`
    throw badRequest(
      `the object provided is unrecognized (must be of type ${expected.kind}): ${error.message} (${size})`,
    )
  }
}

function decodeValue(
  body: OpenedBody,
  actual: GroupVersionKind,
  expected: GroupVersionKind,
): DecodedValue {
  try {
    return body.decode()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw cannotBeHandled(actual, expected, error.message)
  }
}

/**
 * Decodes a request body in any of the supported encodings into an object of the expected kind.
 * Whatever is wrong with the body is a 400, an encoding that is not known a 415.
 */
export async function decodeBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  options: DecodeOptions,
): Promise<DecodedBody> {
  const { expected, fieldValidation = 'Warn' } = options
  const body = await openBody(bytes, contentType, options)
  const actual = actualKind(body.typeMeta, expected)
  checkKind(actual, expected)
  const decoded = decodeValue(body, actual, expected)
  return checkedObject(decoded, { actual, expected, fieldValidation })
}
