import { ApiError, badRequest, type Work } from '../../core/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import { structOf } from '../schema/schema-of.ts'
import {
  actualKind,
  checkedObject,
  checkKind,
  type DecodedBody,
  type DecodedValue,
  type FieldValidation,
  notRegistered,
  readObject,
  readTypeMeta,
} from './checked-object.ts'
import { parseJson } from './json.ts'
import { maxWork } from './limits.ts'
import { decodeMessage, openEnvelope } from './protobuf.ts'
import { parseYamlBody } from './yaml.ts'

/** The encodings of a request body that are understood, as error messages list them. */
export const supportedMediaTypes = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
] as const

/** One of the encodings that are understood. */
type BodyMediaType = (typeof supportedMediaTypes)[number]

/** The error for a body in an encoding that is not among `accepted`. */
const unsupportedMediaType = (accepted: readonly string[]): ApiError =>
  new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

/** The encoding that a Content-Type header names; none means JSON. */
function bodyMediaType(contentType: string | undefined): BodyMediaType {
  const named = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const found = named === '' ? supportedMediaTypes[0] : supportedMediaTypes.find((m) => m === named)
  if (found === undefined) throw unsupportedMediaType(supportedMediaTypes)
  return found
}

/** What a body is decoded as. */
export interface DecodeOptions {
  /** The kind that the URL calls for; a body without `kind` and `apiVersion` is taken for it. */
  readonly expected: GroupVersionKind
  /** `Warn` when not given. */
  readonly fieldValidation?: FieldValidation
  readonly maxDepth?: number
  /** Counts what the body costs, and stops at its limits; the largest ones when not given. */
  readonly work?: Work
}

/** A body whose encoding is understood and whose kind is known. */
interface OpenedBody {
  readonly actual: GroupVersionKind
  /** Decodes the rest; for protobuf that needs to know the kind first. */
  readonly decode: () => DecodedValue
}

/** Adds to an error of ours what was being done. */
function during<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw badRequest(`${what}: ${error.message}`)
  }
}

const findingKind = "couldn't get version/kind; json parse error"

function openJson(bytes: Uint8Array, { expected, maxDepth, work }: DecodeOptions): OpenedBody {
  const json = during(findingKind, () => parseJson(bytes, work, maxDepth))
  const typeMeta = during(findingKind, () => readTypeMeta(json.value))
  return { actual: actualKind(typeMeta, expected), decode: () => ({ value: json.value, json }) }
}

async function openYaml(
  bytes: Uint8Array,
  { expected, maxDepth, work }: DecodeOptions,
): Promise<OpenedBody> {
  const { duplicates, ...json } = await parseYamlBody(bytes, work, maxDepth)
  const typeMeta = during(findingKind, () => readTypeMeta(json.value))
  return {
    actual: actualKind(typeMeta, expected),
    decode: () => ({ value: json.value, json, duplicates }),
  }
}

function openProtobuf(bytes: Uint8Array, { expected, work }: DecodeOptions): OpenedBody {
  const { message, ...typeMeta } = openEnvelope(bytes, work)
  return {
    actual: actualKind(typeMeta, expected),
    decode: () => ({ value: decodeMessage(message, structOf(expected)) }),
  }
}

function openAs(
  mediaType: ReturnType<typeof bodyMediaType>,
  bytes: Uint8Array,
  options: DecodeOptions,
): OpenedBody | Promise<OpenedBody> {
  if (mediaType === 'application/json') return openJson(bytes, options)
  if (mediaType === 'application/yaml') return openYaml(bytes, options)
  return openProtobuf(bytes, options)
}

async function openBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  options: DecodeOptions,
): Promise<OpenedBody> {
  const mediaType = bodyMediaType(contentType)
  try {
    return await openAs(mediaType, bytes, options)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    // The bytes themselves are not shown, as Kubernetes does: they may hold a credential.
    const size = bytes.length === 0 ? '<empty>' : `${bytes.length} bytes`
    throw badRequest(
      `the object provided is unrecognized (must be of type ${options.expected.kind}): ${error.message} (${size})`,
    )
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
  const { expected, fieldValidation = 'Warn', work = maxWork() } = options
  const body = await openBody(bytes, contentType, { ...options, work })
  const { actual } = body
  checkKind(actual, expected)
  return checkedObject(body.decode, { actual, expected, fieldValidation, work })
}

/**
 * Decodes options, such as those of a deletion. They may come in any API version, and what is wrong
 * with them is said without naming the object that they are about.
 */
export async function decodeOptions(
  bytes: Uint8Array,
  contentType: string | undefined,
  expected: GroupVersionKind,
  work: Work = maxWork(),
): Promise<Record<string, unknown>> {
  const { actual, decode } = await openAs(bodyMediaType(contentType), bytes, { expected, work })
  if (actual.kind !== expected.kind) throw badRequest(notRegistered(actual))
  return readObject(decode(), { expected, fieldValidation: 'Ignore', work }).object
}
