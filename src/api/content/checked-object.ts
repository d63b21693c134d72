import { ApiError, apiVersionOf } from '../../core/index.ts'
import {
  type CheckedStructure,
  checkStructure,
  type GroupVersionKind,
  strictScan,
} from '../schema/index.ts'
import { structOf } from '../schema/schema-of.ts'
import type { FieldValidation } from './field-validation.ts'
import type { ParsedJson } from './json-text.ts'
import { cannotBeHandled } from './type-meta.ts'

/** An object out of a request body. */
export interface DecodedBody {
  /** Checked against its kind and in the form in which Kubernetes would show it. */
  readonly object: Record<string, unknown>
  /** One text per unknown or duplicate field, for Warning headers. */
  readonly warnings: readonly string[]
}

/** A body as it came out of its encoding. */
export interface DecodedValue {
  readonly value: unknown
  /** The JSON text, where there was one to look for duplicates in. */
  readonly json?: ParsedJson
  /** Problems that the encoding itself has found. */
  readonly problems?: readonly string[]
}

/** What the body is, what it should be, and how strictly it is read. */
export interface CheckOptions {
  readonly actual: GroupVersionKind
  readonly expected: GroupVersionKind
  readonly fieldValidation: FieldValidation
}

/** Reads the text once more only when the quick pass has seen a reason to. */
function strictProblems(
  { json, problems = [] }: DecodedValue,
  checked: CheckedStructure,
  options: CheckOptions,
): readonly string[] {
  if (json === undefined) return problems
  const looksStrict = !checked.hasUnknownFields && checked.keys === json.keys
  const ignored = options.fieldValidation === 'Ignore'
  if ((looksStrict || ignored) && !json.hasFraction) return problems
  return [...problems, ...strictScan(json.text, structOf(options.expected))]
}

function checkAll(decoded: DecodedValue, options: CheckOptions) {
  try {
    const checked = checkStructure(decoded.value, structOf(options.expected))
    return { object: checked.object, problems: strictProblems(decoded, checked, options) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw cannotBeHandled(options.actual, options.expected, error.message)
  }
}

/** Brings a decoded value into the form of its kind, and deals with what the kind does not know. */
export function checkedObject(decoded: DecodedValue, options: CheckOptions): DecodedBody {
  const { object, problems } = checkAll(decoded, options)
  const { actual, expected, fieldValidation } = options
  if (fieldValidation === 'Strict' && problems.length > 0)
    throw cannotBeHandled(actual, expected, `strict decoding error: ${problems.join(', ')}`)
  const typeMeta = { kind: actual.kind, apiVersion: apiVersionOf(actual) }
  // Named twice so that they come first and say what the kind is in its usual spelling.
  const typed = { ...typeMeta, ...object, ...typeMeta }
  return { object: typed, warnings: fieldValidation === 'Warn' ? problems : [] }
}
