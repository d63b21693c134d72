import {
  asGoStruct,
  type FieldProblem,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../validation/field-problem.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/metadata.ts'
import { type Fields, textAt } from './fields.ts'

const taintNames = { Key: 'key', Value: 'value', Effect: 'effect', TimeAdded: 'timeAdded' }
const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** Problems of the effect of a taint or of a toleration. */
export function effectProblems(effect: string, field: string): FieldProblem[] {
  if (effect === '') return [required(field)]
  return effects.includes(effect) ? [] : [notSupported(field, effect, effects)]
}

function ownProblems(taint: Fields, field: string): FieldProblem[] {
  const [key, value] = [textAt(taint, 'key'), textAt(taint, 'value')]
  const valueProblems = labelValueProblems(value)
  return [
    ...invalidEach(`${field}.key`, key, qualifiedNameProblems(key)),
    ...(valueProblems.length > 0
      ? [invalidValue(`${field}.value`, value, valueProblems.join(';'))]
      : []),
    ...effectProblems(textAt(taint, 'effect'), `${field}.effect`),
  ]
}

/** Problems of the taints of a node. */
export function taintProblems(taints: readonly Fields[], field: string): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(taints, (taint, index) => {
    const at = `${field}[${index}]`
    const pair = `${textAt(taint, 'effect')}\n${textAt(taint, 'key')}`
    const repeated: FieldProblem[] = seen.has(pair)
      ? [
          {
            type: 'FieldValueDuplicate',
            field: at,
            badValue: asGoStruct(taint, taintNames, { timeAdded: null }),
            detail: 'taints must be unique by key and effect pair',
          },
        ]
      : []
    seen.add(pair)
    return [...ownProblems(taint, at), ...repeated]
  })
}
