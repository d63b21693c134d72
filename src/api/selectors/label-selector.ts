import {
  formatRequirement,
  type LabelRequirement,
  type Labels,
  requirementMatcher,
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

/** Parses the `labelSelector` of a request; throws a 400. Empty text selects everything. */
export const parseLabelSelector = (text: string): LabelSelector =>
  selectorOf(parseLabelRequirements(text))

/** Selects the objects that have all of these labels, as a Service's `spec.selector` does. */
export const labelSelectorFromSet = (labels: Readonly<Record<string, string>>): LabelSelector =>
  selectorOf(
    Object.entries(labels).map(([key, value]) => ({ key, operator: '=', values: [value] })),
  )
