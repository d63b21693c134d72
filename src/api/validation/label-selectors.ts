import { type Fields, recordsAt, textAt, textMapAt, textsAt } from '../kinds/fields.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
  required,
} from './field-problem.ts'
import { labelProblems, labelValueProblems, qualifiedNameProblems } from './metadata.ts'

function valueCountProblems(operator: string, values: string[], field: string): FieldProblem[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      return values.length > 0
        ? []
        : [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      return values.length === 0
        ? []
        : [
            forbiddenValue(
              `${field}.values`,
              "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
          ]
    default:
      return [invalidValue(`${field}.operator`, operator, 'not a valid selector operator')]
  }
}

function requirementProblems(requirement: Fields, field: string): FieldProblem[] {
  const key = textAt(requirement, 'key')
  const values = textsAt(requirement, 'values')
  return [
    ...valueCountProblems(textAt(requirement, 'operator'), values, field),
    ...invalidEach(`${field}.key`, key, qualifiedNameProblems(key)),
    ...problemsOfEach(values, (value, index) =>
      invalidEach(`${field}.values[${index}]`, value, labelValueProblems(value)),
    ),
  ]
}

/** Problems of a label selector as objects carry it (`matchLabels`, `matchExpressions`). */
export const labelSelectorProblems = (selector: Fields, field: string): FieldProblem[] => [
  ...labelProblems(textMapAt(selector, 'matchLabels'), `${field}.matchLabels`),
  ...problemsOfEach(recordsAt(selector, 'matchExpressions'), (requirement, index) =>
    requirementProblems(requirement, `${field}.matchExpressions[${index}]`),
  ),
]
