import { ApiError, type Work, WorkExceeded } from '../../core/index.ts'
import {
  type DecodedBody,
  decodeBody,
  decodeOptions,
  type FieldValidation,
  maxWorkLimits,
  type ParsedJson,
  parseJson,
  readPatched,
} from '../content/index.ts'
import { applyPatch, type PatchType } from '../patch/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import { structOf } from '../schema/schema-of.ts'

/** A body to be made an object of. */
interface DecodeJob {
  readonly type: 'object' | 'options'
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly expected: GroupVersionKind
  readonly fieldValidation: FieldValidation
}

/** A patch to be applied to a stored object. */
interface PatchJob {
  readonly type: 'patch'
  readonly patchType: PatchType
  readonly bytes: Uint8Array
  /** The object as JSON. */
  readonly original: string
  readonly expected: GroupVersionKind
  readonly fieldValidation: FieldValidation
}

/** Work on a request body: what a worker thread is sent. */
export type BodyJob = DecodeJob | PatchJob

/** Makes the object that a body describes. */
export async function decodeJob(job: DecodeJob, work: Work): Promise<DecodedBody> {
  const { bytes, contentType, expected, fieldValidation } = job
  if (job.type === 'object')
    return decodeBody(bytes, contentType, { expected, fieldValidation, work })
  return { object: await decodeOptions(bytes, contentType, expected, work), warnings: [] }
}

/** Reads a patch; what is wrong with it is said as Kubernetes says it for this type. */
export function parsePatch(type: PatchType, bytes: Uint8Array, work: Work): ParsedJson {
  try {
    return parseJson(bytes, work)
  } catch (error) {
    if (!(error instanceof ApiError) || type === 'strategic') throw error
    throw new ApiError('BadRequest', `error decoding patch: ${error.message}`)
  }
}

/** How a patch is applied and its outcome read. */
export interface PatchOptions {
  readonly patchType: PatchType
  readonly expected: GroupVersionKind
  readonly fieldValidation: FieldValidation
  readonly work: Work
}

/** Applies a patch to an object and reads the outcome as strictly as if it had been sent. */
export function applyParsed(
  patch: ParsedJson,
  original: Readonly<Record<string, unknown>>,
  options: PatchOptions,
): DecodedBody {
  const { patchType, expected, fieldValidation, work } = options
  const schema = structOf(expected)
  const outcome = applyPatch(patchType, patch.value, original, { schema, work })
  const keepsKind = patchType === 'strategic'
  return readPatched(outcome, { expected, fieldValidation, work, patch, keepsKind })
}

/** Does any job, in whichever thread. */
export async function runBodyJob(job: BodyJob, work: Work): Promise<DecodedBody> {
  if (job.type !== 'patch') return decodeJob(job, work)
  const patch = parsePatch(job.patchType, job.bytes, work)
  return applyParsed(patch, JSON.parse(job.original), { ...job, work })
}

/** What a worker answers; errors cross threads as plain values. */
export type BodyJobAnswer = { readonly cpuMs: number } & (
  | { readonly text: string; readonly warnings: readonly string[] }
  | { readonly error: Pick<ApiError, 'reason' | 'message' | 'details'> }
  | { readonly exceeded: string }
)

/** Does a job within the largest limits, and answers in a form that costs the other thread little. */
export async function answerBodyJob(job: BodyJob, work: Work): Promise<BodyJobAnswer> {
  const startedAt = performance.now()
  const outcome = await runBodyJob(job, work).then(
    ({ object, warnings }) => ({ text: JSON.stringify(object), warnings }),
    (error: unknown) => {
      if (error instanceof WorkExceeded) return { exceeded: error.message }
      if (!(error instanceof ApiError)) throw error
      const { reason, message, details } = error
      return { error: { reason, message, details } }
    },
  )
  return { ...outcome, cpuMs: performance.now() - startedAt }
}

/** 413: the body is within its size, but costs too much. */
export const tooMuchWork = (what: string): ApiError =>
  new ApiError(
    'RequestEntityTooLarge',
    `Request entity too large: ${what}; limits are ${maxWorkLimits.tokens} values for JSON and protobuf, ${maxWorkLimits.yamlBytes} bytes and ${maxWorkLimits.yamlTokens} tokens for YAML: split the object, or send JSON`,
  )
