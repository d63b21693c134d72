import { labelValueProblems, qualifiedNameProblems } from '../validation/label-rules.ts'

/** How a requirement relates a label to its values. */
export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | '>' | '<'

/** One condition on the labels of an object. */
export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  /** Sorted and without duplicates. */
  readonly values: readonly string[]
}

/** The labels of an object; absent means none. */
export type Labels = Readonly<Record<string, string>> | undefined

const quoted = (value: unknown): string => JSON.stringify(value)

/** One problem of a field in the one-line form that Kubernetes uses in messages. */
export const invalidValue = (path: string, value: unknown, detail: string): string =>
  `${path}: Invalid value: ${quoted(value)}: ${detail}`

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n }

function toInt64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text)
  return value >= int64.min && value <= int64.max ? value : undefined
}

/** How many values an operator takes, and Kubernetes' words when there are more or fewer. */
const valueCounts = [
  {
    operators: new Set<LabelOperator>(['in', 'notin']),
    fits: (count: number) => count > 0,
    detail: "for 'in', 'notin' operators, values set can't be empty",
  },
  {
    operators: new Set<LabelOperator>(['=', '==', '!=']),
    fits: (count: number) => count === 1,
    detail: 'exact-match compatibility requires one single value',
  },
  {
    operators: new Set<LabelOperator>(['exists', '!']),
    fits: (count: number) => count === 0,
    detail: 'values set must be empty for exists and does not exist',
  },
] as const

function countProblems(operator: LabelOperator, values: readonly string[]): string[] {
  const rule = valueCounts.find(({ operators }) => operators.has(operator))
  if (rule === undefined || rule.fits(values.length)) return []
  return [invalidValue('values', values, rule.detail)]
}

function numberProblems(operator: LabelOperator, values: readonly string[]): string[] {
  if (operator !== '>' && operator !== '<') return []
  const detail = "for 'Gt', 'Lt' operators, the value must be an integer"
  return values.flatMap((value, index) =>
    toInt64(value) === undefined ? [invalidValue(`values[${index}]`, value, detail)] : [],
  )
}

/** Every problem of a requirement; empty when it can be used. */
export function requirementProblems(requirement: LabelRequirement): string[] {
  const { key, operator, values } = requirement
  const keyProblems = qualifiedNameProblems(key)
  return [
    ...(keyProblems.length > 0 ? [invalidValue('key', key, keyProblems.join('; '))] : []),
    ...countProblems(operator, values),
    ...numberProblems(operator, values),
    ...values.flatMap((value, index) => {
      const problems = labelValueProblems(value)
      if (problems.length === 0) return []
      return [invalidValue(`values[${index}][${key}]`, value, problems.join('; '))]
    }),
  ]
}

function compares(operator: '>' | '<', value: string | undefined, limit: bigint): boolean {
  const number = toInt64(value)
  if (number === undefined) return false
  return operator === '>' ? number > limit : number < limit
}

// A label may be called `constructor`: only what the object itself has counts.
const lookup = (labels: Labels, key: string): string | undefined =>
  labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined

/** Makes the test that a requirement stands for. */
export function requirementMatcher(requirement: LabelRequirement): (labels: Labels) => boolean {
  const { key, operator, values } = requirement
  switch (operator) {
    case '=':
    case '==':
    case 'in': {
      const wanted = new Set<string | undefined>(values)
      return (labels) => wanted.has(lookup(labels, key))
    }
    case '!=':
    case 'notin': {
      const unwanted = new Set<string | undefined>(values)
      return (labels) => !unwanted.has(lookup(labels, key))
    }
    case 'exists':
      return (labels) => lookup(labels, key) !== undefined
    case '!':
      return (labels) => lookup(labels, key) === undefined
    case '>':
    case '<': {
      const limit = toInt64(values[0])
      if (limit === undefined) return () => false
      return (labels) => compares(operator, lookup(labels, key), limit)
    }
  }
}

/** The requirement in the grammar that it can be parsed from. */
export function formatRequirement({ key, operator, values }: LabelRequirement): string {
  if (operator === 'exists') return key
  if (operator === '!') return `!${key}`
  const list = values.join(',')
  return operator === 'in' || operator === 'notin'
    ? `${key} ${operator} (${list})`
    : `${key}${operator}${list}`
}
