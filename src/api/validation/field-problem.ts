import { goQuote, type StatusCause } from '../../core/index.ts'

// Go's JSON encoder escapes what could end a script element.
const htmlEscapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
}

/** A value as Kubernetes shows it in messages: quoted text, plain numbers, JSON for the rest. */
export function goValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value)
  if (value === undefined) return 'null'
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => htmlEscapes[char] ?? char)
}

/**
 * A struct as Kubernetes shows it where it prints its internal form: Go's field names, absent text as
 * empty. `names` maps them to the names that JSON uses.
 */
export const asGoStruct = (
  fields: Readonly<Record<string, unknown>>,
  names: Readonly<Record<string, string>>,
  absent: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(names).map(([goName, jsonName]) => [
      goName,
      fields[jsonName] ?? (jsonName in absent ? absent[jsonName] : ''),
    ]),
  )

/** The kinds of problem that Kubernetes tells apart, with the words it uses for them. */
const words = {
  FieldValueRequired: 'Required value',
  FieldValueInvalid: 'Invalid value',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueForbidden: 'Forbidden',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
  FieldValueNotFound: 'Not found',
  FieldValueTypeInvalid: 'Invalid value',
} as const

/** The `reason` of a validation cause. */
type FieldProblemType = keyof typeof words

/** One thing that is wrong with one field. */
export interface FieldProblem {
  readonly type: FieldProblemType
  /** Path of the field, for example `spec.ports[0].port`. */
  readonly field: string
  readonly badValue?: unknown
  readonly detail?: string
}

const withoutValue = new Set<FieldProblemType>([
  'FieldValueRequired',
  'FieldValueForbidden',
  'FieldValueTooLong',
])

/** The problem as a cause of a Status, in Kubernetes' wording. */
export function toCause(problem: FieldProblem): StatusCause {
  const head = withoutValue.has(problem.type)
    ? words[problem.type]
    : `${words[problem.type]}: ${goValue(problem.badValue)}`
  return {
    reason: problem.type,
    message: problem.detail ? `${head}: ${problem.detail}` : head,
    field: problem.field,
  }
}

/** A value that must be there is not. */
export const required = (field: string, detail = ''): FieldProblem => ({
  type: 'FieldValueRequired',
  field,
  detail,
})

/** A value that is malformed or out of bounds. */
export const invalidValue = (field: string, badValue: unknown, detail: string): FieldProblem => ({
  type: 'FieldValueInvalid',
  field,
  badValue,
  detail,
})

/** A value that may not be there under these conditions. */
export const forbiddenValue = (field: string, detail: string): FieldProblem => ({
  type: 'FieldValueForbidden',
  field,
  detail,
})

/** A value that must be unique and is not. */
export const duplicateValue = (field: string, badValue: unknown): FieldProblem => ({
  type: 'FieldValueDuplicate',
  field,
  badValue,
})

/** A value outside a fixed set; `supported` is listed in the order given. */
export const notSupported = (
  field: string,
  badValue: unknown,
  supported: readonly string[],
): FieldProblem => ({
  type: 'FieldValueNotSupported',
  field,
  badValue,
  detail: `supported values: ${supported.map(goQuote).join(', ')}`,
})

/** A value of too many bytes; the value itself is not repeated. */
export const tooLong = (field: string, maxBytes: number): FieldProblem => ({
  type: 'FieldValueTooLong',
  field,
  detail: `may not be more than ${maxBytes} bytes`,
})

/** A list of too many items. */
export const tooMany = (field: string, actual: number, max: number): FieldProblem => ({
  type: 'FieldValueTooMany',
  field,
  badValue: actual,
  detail: `must have at most ${max} item${max === 1 ? '' : 's'}`,
})

/** Nobody reads more; whoever sends a million wrong values must not be told of each. */
const maxProblems = 100

/** The problems of each item, until there are enough. */
export function problemsOfEach<T>(
  items: readonly T[],
  problemsOf: (item: T, index: number) => readonly FieldProblem[],
): FieldProblem[] {
  const problems: FieldProblem[] = []
  for (const [index, item] of items.entries()) {
    problems.push(...problemsOf(item, index))
    if (problems.length >= maxProblems) break
  }
  return problems
}

/** The first problems as the causes of a Status. */
export const causesOf = (problems: readonly FieldProblem[]): StatusCause[] =>
  problems.slice(0, maxProblems).map(toCause)

/** Turns messages about one value into problems of its field. */
export const invalidEach = (
  field: string,
  value: unknown,
  messages: readonly string[],
): FieldProblem[] => messages.map((message) => invalidValue(field, value, message))

/** The same problems, each once, in the order of their first appearance. */
export function withoutRepeats(problems: readonly FieldProblem[]): FieldProblem[] {
  const seen = new Set<string>()
  return problems.slice(0, 10 * maxProblems).filter((problem) => {
    const key = `${problem.field}\n${toCause(problem).message}`
    return !seen.has(key) && seen.add(key)
  })
}
