import { badRequest } from '../../core/index.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/metadata.ts'

/** How a requirement relates a label to its values. */
type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | '>' | '<'

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
const invalidValue = (path: string, value: unknown, detail: string): string =>
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
function requirementProblems(requirement: LabelRequirement): string[] {
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
function requirementMatcher(requirement: LabelRequirement): (labels: Labels) => boolean {
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
function formatRequirement({ key, operator, values }: LabelRequirement): string {
  if (operator === 'exists') return key
  if (operator === '!') return `!${key}`
  const list = values.join(',')
  return operator === 'in' || operator === 'notin'
    ? `${key} ${operator} (${list})`
    : `${key}${operator}${list}`
}

const symbols = new Set(['=', '==', '!=', '!', '(', ')', ',', '>', '<'])
const binaryOperators = ['=', '==', '!=', 'in', 'notin', '>', '<'] as const
/** Kubernetes lists the operators in this order when it misses one. */
const expectedOperators = 'in, notin, =, ==, !=, gt, lt'

const isBinaryOperator = (token: string): token is (typeof binaryOperators)[number] =>
  binaryOperators.some((operator) => operator === token)

/** Reads tokens one by one; the end reads as an empty string, which no token is. */
class Tokens {
  readonly #tokens: readonly string[]
  #next = 0

  constructor(text: string) {
    this.#tokens = text.match(/==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g) ?? []
  }

  peek(): string {
    return this.#tokens[this.#next] ?? ''
  }

  take(): string {
    const token = this.peek()
    this.#next += 1
    return token
  }
}

const isIdentifier = (token: string): boolean => token !== '' && !symbols.has(token)

class Unreadable extends Error {}

const expected = (found: string, what: string): Unreadable =>
  new Unreadable(`found '${found}', expected: ${what}`)

function readKey(tokens: Tokens): string {
  const key = tokens.take()
  if (!isIdentifier(key)) throw expected(key, 'identifier')
  const problems = qualifiedNameProblems(key)
  // Kubernetes names no field here, and prints the missing path like this.
  if (problems.length > 0) throw new Unreadable(invalidValue('<nil>', key, problems.join('; ')))
  return key
}

/** `(a,b)`, where a missing value, as in `()` or `(a,)`, is the empty string. */
function readValueSet(tokens: Tokens): string[] {
  const open = tokens.take()
  if (open !== '(') throw new Unreadable(`found '${open}' expected: '('`)
  if (tokens.peek() !== ')' && tokens.peek() !== ',' && !isIdentifier(tokens.peek())) {
    throw expected(tokens.peek(), "',', ')' or identifier")
  }
  const values: string[] = []
  for (;;) {
    values.push(isIdentifier(tokens.peek()) ? tokens.take() : '')
    const next = tokens.take()
    if (next === ')') return values
    if (next !== ',') {
      throw expected(next, values.at(-1) === '' ? "',', or identifier" : "',' or ')'")
    }
  }
}

function readExactValue(tokens: Tokens): string[] {
  if (tokens.peek() === '' || tokens.peek() === ',') return ['']
  const value = tokens.take()
  if (!isIdentifier(value)) throw expected(value, 'identifier')
  return [value]
}

function readOperatorAndValues(tokens: Tokens): Omit<LabelRequirement, 'key'> {
  const operator = tokens.take()
  if (!isBinaryOperator(operator)) throw expected(operator, expectedOperators)
  const values =
    operator === 'in' || operator === 'notin' ? readValueSet(tokens) : readExactValue(tokens)
  return { operator, values: [...new Set(values)].sort() }
}

function readRequirement(tokens: Tokens): LabelRequirement {
  const negated = tokens.peek() === '!'
  if (negated) tokens.take()
  const key = readKey(tokens)
  const alone = tokens.peek() === '' || tokens.peek() === ','
  const presence: LabelOperator = negated ? '!' : 'exists'
  const requirement =
    negated || alone
      ? { key, operator: presence, values: [] }
      : { key, ...readOperatorAndValues(tokens) }
  const problems = [...new Set(requirementProblems(requirement))]
  if (problems.length === 1) throw new Unreadable(problems[0])
  if (problems.length > 1) throw new Unreadable(`[${problems.join(', ')}]`)
  return requirement
}

function readWrapped(tokens: Tokens): LabelRequirement {
  try {
    return readRequirement(tokens)
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    throw badRequest(`unable to parse requirement: ${error.message}`)
  }
}

/** Far more than anybody writes; each is kept, and checked on every change, by every watch that has it. */
const maxRequirements = 250

/** Parses Kubernetes' label selector grammar; throws a 400 that says what was found and expected. */
function parseLabelRequirements(text: string): LabelRequirement[] {
  const tokens = new Tokens(text)
  const requirements: LabelRequirement[] = []
  const startsRequirement = (): boolean => isIdentifier(tokens.peek()) || tokens.peek() === '!'
  if (tokens.peek() === '') return requirements
  if (!startsRequirement()) {
    throw badRequest(`found '${tokens.peek()}', expected: !, identifier, or 'end of string'`)
  }
  for (;;) {
    if (requirements.length === maxRequirements)
      throw badRequest(`the label selector has more than ${maxRequirements} requirements`)
    requirements.push(readWrapped(tokens))
    const next = tokens.take()
    if (next === '') return requirements
    if (next !== ',') throw badRequest(`found '${next}', expected: ',' or 'end of string'`)
    if (!startsRequirement()) {
      throw badRequest(`found '${tokens.peek()}', expected: identifier after ','`)
    }
  }
}

/** Tells whether an object's labels are selected. */
export interface LabelSelector {
  (labels: Labels): boolean
  /** True when nothing is left out, so that there is no need to ask. */
  readonly isEverything: boolean
  /** The same selector always in the same words, in the grammar it can be parsed from. */
  readonly canonical: string
}

function selectorOf(requirements: readonly LabelRequirement[]): LabelSelector {
  const sorted = requirements.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  const matchers = sorted.map(requirementMatcher)
  return Object.assign((labels: Labels) => matchers.every((matches) => matches(labels)), {
    isEverything: matchers.length === 0,
    canonical: sorted.map(formatRequirement).join(','),
  })
}

/** Parses the `labelSelector` of a request; throws a 400. Empty text selects everything. */
export const parseLabelSelector = (text: string): LabelSelector =>
  selectorOf(parseLabelRequirements(text))

/** Selects the objects that have all of these labels, as a Service's `spec.selector` does. */
export const labelSelectorFromSet = (labels: Readonly<Record<string, string>>): LabelSelector =>
  selectorOf(
    Object.entries(labels).map(([key, value]) => ({ key, operator: '=', values: [value] })),
  )
