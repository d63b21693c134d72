import type { StatusCause } from '../../core/index.ts'

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
export type FieldProblemType = keyof typeof words

/** One thing that is wrong with one field. */
export interface FieldProblem {
  readonly type: FieldProblemType
  /** Path of the field, for example `spec.ports[0].port`. */
  readonly field: string
  readonly badValue?: unknown
  readonly detail?: string
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === undefined || value === null) return 'null'
  return JSON.stringify(value)
}

const withoutValue = new Set<FieldProblemType>([
  'FieldValueRequired',
  'FieldValueForbidden',
  'FieldValueTooLong',
  'FieldValueTooMany',
])

/** The problem as a cause of a Status, in Kubernetes' wording. */
export function toCause(problem: FieldProblem): StatusCause {
  const head = withoutValue.has(problem.type)
    ? words[problem.type]
    : `${words[problem.type]}: ${shownValue(problem.badValue)}`
  return {
    reason: problem.type,
    message: problem.detail ? `${head}: ${problem.detail}` : head,
    field: problem.field,
  }
}
