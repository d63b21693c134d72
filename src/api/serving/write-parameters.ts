import { type FieldValidation, fieldValidationLevels, fieldValidationOf } from '../content/index.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  notSupported,
  tooLong,
} from '../validation/index.ts'
import { type OptionsKind, refuseProblems } from './refuse-options.ts'

/** How a write is meant. */
export interface WriteParameters {
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
}

const maxFieldManagerBytes = 128
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u

/** Nobody keeps field managers here, but a client learns of its mistake as elsewhere. */
function fieldManagerProblems(manager: string): FieldProblem[] {
  const field = 'fieldManager'
  const char = unprintable.exec(manager)
  const problems =
    Buffer.byteLength(manager) > maxFieldManagerBytes ? [tooLong(field, maxFieldManagerBytes)] : []
  if (!char) return problems
  const code = (char[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  const position = Buffer.byteLength(manager.slice(0, char.index))
  const why = `invalid character U+${code} (at position ${position})`
  return [...problems, invalidValue(field, manager, why)]
}

/** `All` is the only sort of dry run. */
export const dryRunProblems = (values: readonly string[]): FieldProblem[] =>
  values.every((value) => value === 'All') ? [] : [notSupported('dryRun', values, ['All'])]

/** Reads the query parameters of a write; throws a 422 with everything that is wrong with them. */
export function writeParametersOf(query: URLSearchParams, kind: OptionsKind): WriteParameters {
  const dryRuns = query.getAll('dryRun')
  const level = query.get('fieldValidation')
  const fieldValidation = fieldValidationOf(level)
  refuseProblems(kind, [
    ...(kind === 'PatchOptions' && query.has('force')
      ? [forbiddenValue('force', 'may not be specified for non-apply patch')]
      : []),
    ...fieldManagerProblems(query.get('fieldManager') ?? ''),
    ...dryRunProblems(dryRuns),
    ...(fieldValidation ? [] : [notSupported('fieldValidation', level, fieldValidationLevels)]),
  ])
  return { dryRun: dryRuns.length > 0, fieldValidation: fieldValidation ?? 'Warn' }
}
