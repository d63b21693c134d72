import { ApiError, apiVersionOf, isRecord } from '../../core/index.ts'
import { checkStructure, StructureMismatch, strictScan } from '../schema/index.ts'
import { structOf } from '../schema/schema-of.ts'
import { type DecodedBody, type ReadOptions, strictError, withTypeMeta } from './checked-object.ts'
import type { ParsedJson } from './json-text.ts'

/** How the outcome of a patch is read. */
export interface PatchedOptions extends ReadOptions {
  /** A merge patch or strategic merge patch as it was sent, to find what it has twice. */
  readonly patch?: ParsedJson
  /** True when the patch cannot change `kind` and `apiVersion`, whatever it says of them. */
  readonly keepsKind?: boolean
}

/**
 * The 422 for a patch that leads to no object of its kind. Kubernetes shows the whole outcome here;
 * ours does not, because whoever may patch an object need not be allowed to read it.
 */
function invalidPatch(why: string): ApiError {
  const message = `Invalid value: "the patched object": ${why}`
  return new ApiError('Invalid', ` "" is invalid: patch: ${message}`, {
    details: { causes: [{ reason: 'FieldValueInvalid', message, field: 'patch' }] },
  })
}

/** What the patch has twice, and what its outcome has that the kind does not know. */
function strictProblems(
  outcome: unknown,
  hasUnknownFields: boolean,
  { patch, expected, fieldValidation }: PatchedOptions,
): string[] {
  if (fieldValidation === 'Ignore') return []
  const struct = structOf(expected)
  const inPatch = patch === undefined ? [] : strictScan(patch.text, struct)
  const inOutcome = hasUnknownFields ? strictScan(JSON.stringify(outcome), struct) : []
  return [...inPatch.filter((problem) => problem.startsWith('duplicate field ')), ...inOutcome]
}

function read(outcome: unknown, options: PatchedOptions) {
  try {
    const { object, hasUnknownFields } = checkStructure(outcome, structOf(options.expected))
    return { object, problems: strictProblems(outcome, hasUnknownFields, options) }
  } catch (error) {
    if (error instanceof StructureMismatch) throw invalidPatch(error.message)
    throw error
  }
}

/** A patch may not turn an object into one of another kind. */
function requireKind(outcome: unknown, { expected, keepsKind }: PatchedOptions): void {
  if (keepsKind || !isRecord(outcome)) return
  const { kind = expected.kind, apiVersion = apiVersionOf(expected) } = outcome
  if (kind === expected.kind && apiVersion === apiVersionOf(expected)) return
  throw invalidPatch(
    `the patch changes kind and apiVersion to ${JSON.stringify({ kind, apiVersion })}`,
  )
}

/** Brings what a patch has made of an object into the form of its kind. */
export function readPatched(outcome: unknown, options: PatchedOptions): DecodedBody {
  requireKind(outcome, options)
  const { object, problems } = read(outcome, options)
  if (options.fieldValidation === 'Strict' && problems.length > 0)
    throw invalidPatch(strictError(problems))
  return {
    object: withTypeMeta(object, options.expected),
    warnings: options.fieldValidation === 'Warn' ? problems : [],
  }
}
