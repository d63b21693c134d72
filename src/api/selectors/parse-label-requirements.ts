import { badRequest } from '../../core/index.ts'
import { qualifiedNameProblems } from '../validation/label-rules.ts'
import {
  invalidValue,
  type LabelOperator,
  type LabelRequirement,
  requirementProblems,
} from './label-requirement.ts'

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
export function parseLabelRequirements(text: string): LabelRequirement[] {
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
