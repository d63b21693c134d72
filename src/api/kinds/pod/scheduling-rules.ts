import { isRecord } from '../../../core/index.ts'
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { labelSelectorProblems } from '../../validation/label-selectors.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../validation/metadata.ts'
import { nameIsDnsLabel } from '../../validation/names.ts'
import { type Fields, fieldsAt, isUnset, numberAt, recordsAt, textAt, textsAt } from '../fields.ts'
import { effectProblems } from '../taints.ts'

function operatorProblems(toleration: Fields, field: string): FieldProblem[] {
  const [operator, value] = [textAt(toleration, 'operator'), textAt(toleration, 'value')]
  const at = `${field}.operator`
  switch (operator) {
    case '':
    case 'Equal': {
      const problems = labelValueProblems(value)
      return problems.length > 0 ? [invalidValue(at, value, problems.join(';'))] : []
    }
    case 'Exists':
      return value
        ? [invalidValue(at, value, "value must be empty when `operator` is 'Exists'")]
        : []
    default:
      return [notSupported(at, operator, ['Equal', 'Exists'])]
  }
}

/** Problems of the taints that a pod tolerates. */
export const tolerationProblems = (spec: Fields): FieldProblem[] =>
  problemsOfEach(recordsAt(spec, 'tolerations'), (toleration, index) => {
    const field = `spec.tolerations[${index}]`
    const [key, effect] = [textAt(toleration, 'key'), textAt(toleration, 'effect')]
    const operator = textAt(toleration, 'operator')
    const anyKey =
      'operator must be Exists when `key` is empty, which means "match all values and all keys"'
    const onlyNoExecute = "effect must be 'NoExecute' when `tolerationSeconds` is set"
    return [
      ...(key ? invalidEach(`${field}.key`, key, qualifiedNameProblems(key)) : []),
      ...(!key && operator !== 'Exists'
        ? [invalidValue(`${field}.operator`, operator, anyKey)]
        : []),
      ...(!isUnset(toleration['tolerationSeconds']) && effect !== 'NoExecute'
        ? [invalidValue(`${field}.effect`, effect, onlyNoExecute)]
        : []),
      ...operatorProblems(toleration, field),
      ...(effect ? effectProblems(effect, `${field}.effect`) : []),
    ]
  })

function nodeValueProblems(requirement: Fields, field: string): FieldProblem[] {
  const count = textsAt(requirement, 'values').length
  const operator = textAt(requirement, 'operator')
  const at = `${field}.values`
  switch (operator) {
    case 'In':
    case 'NotIn':
      return count > 0 ? [] : [required(at, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      return count === 0
        ? []
        : [forbiddenValue(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    case 'Gt':
    case 'Lt':
      return count === 1
        ? []
        : [required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    default:
      return [invalidValue(`${field}.operator`, operator, 'not a valid selector operator')]
  }
}

function nodeTermProblems(term: Fields, strict: boolean, field: string): FieldProblem[] {
  return problemsOfEach(recordsAt(term, 'matchExpressions'), (requirement, index) => {
    const at = `${field}.matchExpressions[${index}]`
    const key = textAt(requirement, 'key')
    const values = strict ? textsAt(requirement, 'values') : []
    return [
      ...nodeValueProblems(requirement, at),
      ...invalidEach(`${at}.key`, key, qualifiedNameProblems(key)),
      ...problemsOfEach(values, (value, position) =>
        invalidEach(`${at}.values[${position}]`, value, labelValueProblems(value)),
      ),
    ]
  })
}

const whenRequired = 'requiredDuringSchedulingIgnoredDuringExecution'
const whenPreferred = 'preferredDuringSchedulingIgnoredDuringExecution'

function weightProblems(term: Fields, field: string): FieldProblem[] {
  const weight = numberAt(term, 'weight') ?? 0
  return weight > 0 && weight <= 100
    ? []
    : [invalidValue(`${field}.weight`, weight, 'must be in the range 1-100')]
}

function nodeAffinityProblems(affinity: Fields, field: string): FieldProblem[] {
  const needed = affinity[whenRequired]
  const terms = recordsAt(fieldsAt(affinity, whenRequired), 'nodeSelectorTerms')
  const at = `${field}.${whenRequired}.nodeSelectorTerms`
  return [
    ...(isRecord(needed) && terms.length === 0
      ? [required(at, 'must have at least one node selector term')]
      : []),
    ...problemsOfEach(terms, (term, index) => nodeTermProblems(term, true, `${at}[${index}]`)),
    ...problemsOfEach(recordsAt(affinity, whenPreferred), (term, index) => {
      const one = `${field}.${whenPreferred}[${index}]`
      return [
        ...weightProblems(term, one),
        ...nodeTermProblems(fieldsAt(term, 'preference'), false, `${one}.preference`),
      ]
    }),
  ]
}

function podTermProblems(term: Fields, field: string): FieldProblem[] {
  const key = textAt(term, 'topologyKey')
  return [
    ...labelSelectorProblems(fieldsAt(term, 'labelSelector'), `${field}.labelSelector`),
    ...labelSelectorProblems(fieldsAt(term, 'namespaceSelector'), `${field}.namespaceSelector`),
    ...problemsOfEach(textsAt(term, 'namespaces'), (name) =>
      invalidEach(`${field}.namespace`, name, nameIsDnsLabel(name, false)),
    ),
    ...(key ? [] : [required(`${field}.topologyKey`, 'can not be empty')]),
    ...invalidEach(`${field}.topologyKey`, key, qualifiedNameProblems(key)),
  ]
}

const podAffinityProblems = (affinity: Fields, field: string): FieldProblem[] => [
  ...problemsOfEach(recordsAt(affinity, whenRequired), (term, index) =>
    podTermProblems(term, `${field}.${whenRequired}[${index}]`),
  ),
  ...problemsOfEach(recordsAt(affinity, whenPreferred), (term, index) => {
    const at = `${field}.${whenPreferred}[${index}]`
    return [
      ...weightProblems(term, at),
      ...podTermProblems(fieldsAt(term, 'podAffinityTerm'), `${at}.podAffinityTerm`),
    ]
  }),
]

/** Problems of where a pod would rather run. */
export function affinityProblems(spec: Fields): FieldProblem[] {
  const affinity = fieldsAt(spec, 'affinity')
  const at = 'spec.affinity'
  return [
    ...nodeAffinityProblems(fieldsAt(affinity, 'nodeAffinity'), `${at}.nodeAffinity`),
    ...podAffinityProblems(fieldsAt(affinity, 'podAffinity'), `${at}.podAffinity`),
    ...podAffinityProblems(fieldsAt(affinity, 'podAntiAffinity'), `${at}.podAntiAffinity`),
  ]
}

/** Problems of what must happen before a pod is scheduled or counts as ready. */
export function gateProblems(spec: Fields): FieldProblem[] {
  const seen = new Set<string>()
  return [
    ...problemsOfEach(recordsAt(spec, 'readinessGates'), (gate, index) => {
      const type = textAt(gate, 'conditionType')
      const at = `spec.readinessGates[${index}].conditionType`
      return invalidEach(at, type, qualifiedNameProblems(type))
    }),
    ...problemsOfEach(recordsAt(spec, 'schedulingGates'), (gate, index) => {
      const name = textAt(gate, 'name')
      const at = `spec.schedulingGates[${index}]`
      const repeated = seen.has(name) ? [duplicateValue(at, name)] : []
      seen.add(name)
      return [...invalidEach(at, name, qualifiedNameProblems(name)), ...repeated]
    }),
  ]
}

/** Problems of how a set of pods is to be spread. */
export function spreadProblems(spec: Fields): FieldProblem[] {
  const actions = ['DoNotSchedule', 'ScheduleAnyway']
  return problemsOfEach(recordsAt(spec, 'topologySpreadConstraints'), (constraint, index) => {
    const field = `spec.topologySpreadConstraints[${index}]`
    const skew = numberAt(constraint, 'maxSkew') ?? 0
    const action = textAt(constraint, 'whenUnsatisfiable')
    return [
      ...(skew > 0 ? [] : [invalidValue(`${field}.maxSkew`, skew, 'must be greater than zero')]),
      ...(textAt(constraint, 'topologyKey')
        ? []
        : [required(`${field}.topologyKey`, 'can not be empty')]),
      ...(actions.includes(action)
        ? []
        : [notSupported(`${field}.whenUnsatisfiable`, action, actions)]),
      ...labelSelectorProblems(fieldsAt(constraint, 'labelSelector'), `${field}.labelSelector`),
    ]
  })
}
