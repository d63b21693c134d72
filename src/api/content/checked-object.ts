import { ApiError, apiVersionOf } from '../../core/index.ts'
import { checkStructure, type GroupVersionKind, strictScan } from '../schema/index.ts'
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
  /** Keys that a YAML text had twice. */
  readonly duplicates?: readonly string[]
}

/** What a decoded value is read as. */
export interface ReadOptions {
  readonly expected: GroupVersionKind
  readonly fieldValidation: FieldValidation
}

/** A value in the form of its kind, and what the kind did not know of it. */
interface ReadObject {
  readonly object: Record<string, unknown>
  readonly problems: readonly string[]
}

/** Brings a value into the form of its kind; a value that cannot be is a StructureMismatch. */
export function readObject(decoded: DecodedValue, options: ReadOptions): ReadObject {
  const struct = structOf(options.expected)
  const { object, hasUnknownFields, keys } = checkStructure(decoded.value, struct)
  const { json, duplicates = [] } = decoded
  if (json === undefined) return { object, problems: duplicates }
  // The text is read once more only when the quick pass has seen a reason to.
  const isClean = !hasUnknownFields && keys === json.keys
  const isIgnored = options.fieldValidation === 'Ignore'
  if ((isClean || isIgnored) && !json.hasFraction) return { object, problems: duplicates }
  return { object, problems: [...duplicates, ...strictScan(json.text, struct)] }
}

/** The error of a strict reading, in Kubernetes' words; duplicates of YAML are one item of it. */
export function strictError(
  problems: readonly string[],
  duplicates: readonly string[] = [],
): string {
  const others = problems.filter((problem) => !duplicates.includes(problem))
  const yaml =
    duplicates.length > 0 ? [`yaml: unmarshal errors:\n  ${duplicates.join('\n  ')}`] : []
  return `strict decoding error: ${[...yaml, ...others].join(', ')}`
}

function decodeAndRead(decode: () => DecodedValue, options: CheckOptions) {
  try {
    const decoded = decode()
    return { ...readObject(decoded, options), duplicates: decoded.duplicates }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw cannotBeHandled(options.actual, options.expected, error.message)
  }
}

/** What the body is, what it should be, and how strictly it is read. */
export interface CheckOptions extends ReadOptions {
  readonly actual: GroupVersionKind
}

/** Decodes a value into the form of its kind, and deals with what the kind does not know. */
export function checkedObject(decode: () => DecodedValue, options: CheckOptions): DecodedBody {
  const { object, problems, duplicates } = decodeAndRead(decode, options)
  const { actual, expected, fieldValidation } = options
  if (fieldValidation === 'Strict' && problems.length > 0)
    throw cannotBeHandled(actual, expected, strictError(problems, duplicates))
  return {
    object: withTypeMeta(object, actual),
    warnings: fieldValidation === 'Warn' ? problems : [],
  }
}

/** Names the kind first, and in its usual spelling. */
export function withTypeMeta(
  object: Record<string, unknown>,
  actual: GroupVersionKind,
): Record<string, unknown> {
  const typeMeta = { kind: actual.kind, apiVersion: apiVersionOf(actual) }
  return { ...typeMeta, ...object, ...typeMeta }
}
