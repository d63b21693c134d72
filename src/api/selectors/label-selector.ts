import { badRequest, isRecord } from '../../core/index.ts'
import {
  formatRequirement,
  type LabelOperator,
  type LabelRequirement,
  type Labels,
  requirementMatcher,
  requirementProblems,
} from './label-requirement.ts'
import { parseLabelRequirements } from './parse-label-requirements.ts'

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

const nothing: LabelSelector = Object.assign(() => false, { isEverything: false, canonical: '' })

/** Parses the `labelSelector` of a request; throws a 400. Empty text selects everything. */
export const parseLabelSelector = (text: string): LabelSelector =>
  selectorOf(parseLabelRequirements(text))

/** Selects the objects that have all of these labels, as a Service's `spec.selector` does. */
export const labelSelectorFromSet = (labels: Readonly<Record<string, string>>): LabelSelector =>
  selectorOf(
    Object.entries(labels).map(([key, value]) => ({ key, operator: '=', values: [value] })),
  )

const operatorOf: ReadonlyMap<unknown, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
])

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function requirementOf(expression: unknown): LabelRequirement {
  const fields = isRecord(expression) ? expression : {}
  const operator = operatorOf.get(fields['operator'])
  if (operator === undefined) {
    const shown = JSON.stringify(textOf(fields['operator']))
    throw badRequest(`${shown} is not a valid label selector operator`)
  }
  const values = [...new Set(listOf(fields['values']).map(textOf))].sort()
  return { key: textOf(fields['key']), operator, values }
}

/**
 * Reads a LabelSelector object (`matchLabels`, `matchExpressions`); throws a 400.
 * No object selects nothing, an empty one everything.
 */
export function labelSelectorFromObject(selector: unknown): LabelSelector {
  if (!isRecord(selector)) return nothing
  const matchLabels = isRecord(selector['matchLabels']) ? selector['matchLabels'] : {}
  const requirements: LabelRequirement[] = [
    ...Object.entries(matchLabels).map(
      ([key, value]): LabelRequirement => ({ key, operator: '=', values: [textOf(value)] }),
    ),
    ...listOf(selector['matchExpressions']).map(requirementOf),
  ]
  const problems = [...new Set(requirements.flatMap(requirementProblems))]
  if (problems.length === 1) throw badRequest(problems.join())
  if (problems.length > 1) throw badRequest(`[${problems.join(', ')}]`)
  return selectorOf(requirements)
}
