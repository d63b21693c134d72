import { ApiError, apiVersionOf, badRequest, isRecord, type Work } from '../../core/index.ts'
import {
  checkStructure,
  type GroupVersionKind,
  StructureMismatch,
  schemaOf,
  strictScan,
} from '../schema/index.ts'
import { shownType } from '../schema/scalars.ts'
import { structOf } from '../schema/schema-of.ts'
import type { ParsedJson } from './json.ts'

/** What happens to unknown and duplicate fields: dropped, dropped with a warning, or refused. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

const levels: readonly FieldValidation[] = ['Ignore', 'Strict', 'Warn']

/** What the `fieldValidation` parameter may say, as error messages list it. */
export const fieldValidationLevels: readonly string[] = ['', ...levels]

/** Reads the `fieldValidation` parameter; without it unknown fields are warned about. */
export function fieldValidationOf(parameter: string | null): FieldValidation | undefined {
  if (parameter === null || parameter === '') return 'Warn'
  return levels.find((known) => known === parameter)
}

/** The `kind` and `apiVersion` of a body, empty where it has none. */
export interface TypeMeta {
  readonly kind: string
  readonly apiVersion: string
}

/** Reads `kind` and `apiVersion` of a decoded JSON value. */
export function readTypeMeta(value: unknown): TypeMeta {
  if (value === null) return { kind: '', apiVersion: '' }
  if (!isRecord(value))
    throw badRequest(`json: cannot unmarshal ${shownType(value)} into Go value of type object`)
  const read = (name: 'kind' | 'apiVersion'): string => {
    const text = value[name] ?? ''
    if (typeof text === 'string') return text
    throw badRequest(
      `json: cannot unmarshal ${shownType(text)} into Go struct field .${name} of type string`,
    )
  }
  return { kind: read('kind'), apiVersion: read('apiVersion') }
}

/** What the body says it is, with the expected kind where it says nothing. */
export function actualKind(sent: TypeMeta, expected: GroupVersionKind): GroupVersionKind {
  const parts = sent.apiVersion.split('/')
  if (parts.length > 2) throw badRequest(`unexpected GroupVersion string: ${sent.apiVersion}`)
  const version = parts.pop() ?? ''
  const group = parts[0] ?? ''
  const kind = sent.kind || expected.kind
  return sent.apiVersion === '' ? { ...expected, kind } : { group, version, kind }
}

const shownVersion = ({ group, version }: GroupVersionKind): string =>
  group === '' ? version : `${group}/${version}`

/** The error for a body that cannot be taken for the kind that was expected. */
const cannotBeHandled = (actual: GroupVersionKind, expected: GroupVersionKind, why: string) =>
  badRequest(
    `${actual.kind} in version "${actual.version}" cannot be handled as a ${expected.kind}: ${why}`,
  )

const optionsKind = /^(Create|Delete|Get|List|Patch|Update)Options$/

/** Says that nobody knows the kind. */
export const notRegistered = (kind: GroupVersionKind): string =>
  `no kind "${kind.kind}" is registered for version "${shownVersion(kind)}"`

/** Refuses a body of another kind or version than the one that its URL names. */
export function checkKind(actual: GroupVersionKind, expected: GroupVersionKind): void {
  if (schemaOf(actual) === undefined) throw cannotBeHandled(actual, expected, notRegistered(actual))
  if (actual.kind !== expected.kind) {
    const internal = expected.group === '' ? 'core' : expected.group.split('.', 1)[0]
    const from = `${actual.version}.${actual.kind}`
    const into = `${internal}.${expected.kind}`
    throw cannotBeHandled(actual, expected, `converting (${from}) to (${into}): unknown conversion`)
  }
  const same = actual.group === expected.group && actual.version === expected.version
  if (!same && !optionsKind.test(actual.kind))
    throw badRequest(
      `the API version in the data (${shownVersion(actual)}) does not match the expected API version (${shownVersion(expected)})`,
    )
}

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
  readonly work: Work
}

/** A value in the form of its kind, and what the kind did not know of it. */
interface ReadObject {
  readonly object: Record<string, unknown>
  readonly problems: readonly string[]
}

/** Brings a value into the form of its kind; a value that cannot be is a StructureMismatch. */
export function readObject(decoded: DecodedValue, options: ReadOptions): ReadObject {
  const struct = structOf(options.expected)
  const { object, hasUnknownFields, keys } = checkStructure(decoded.value, struct, options.work)
  const { json, duplicates = [] } = decoded
  if (json === undefined) return { object, problems: duplicates }
  // The text is read once more only when the quick pass has seen a reason to.
  const isClean = !hasUnknownFields && keys === json.keys
  const isIgnored = options.fieldValidation === 'Ignore'
  if ((isClean || isIgnored) && !json.hasFraction) return { object, problems: duplicates }
  return { object, problems: [...duplicates, ...strictScan(json.text, struct)] }
}

/** The error of a strict reading, in Kubernetes' words; duplicates of YAML are one item of it. */
function strictError(problems: readonly string[], duplicates: readonly string[] = []): string {
  const repeated = new Set(duplicates)
  const others = problems.filter((problem) => !repeated.has(problem))
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
function withTypeMeta(
  object: Record<string, unknown>,
  actual: GroupVersionKind,
): Record<string, unknown> {
  const typeMeta = { kind: actual.kind, apiVersion: apiVersionOf(actual) }
  return { ...typeMeta, ...object, ...typeMeta }
}

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
    const { object, hasUnknownFields } = checkStructure(
      outcome,
      structOf(options.expected),
      options.work,
    )
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
