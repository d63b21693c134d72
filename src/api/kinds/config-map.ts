import { isDeepStrictEqual } from 'node:util'
import { type KubeObject, wellKnownKinds } from '../../core/index.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
  tooLong,
} from '../validation/field-problem.ts'
import { configKeyProblems } from '../validation/names.ts'
import { ageColumn, column, defineKind, nameColumn } from './define-kind.ts'
import { fieldsAt, flagAt, textMapAt } from './fields.ts'

/** How many bytes the values of a ConfigMap or a Secret may have together. */
export const maxDataBytes = 1024 * 1024

/** Problems of a change of an object whose `immutable` is true. */
export function immutableDataProblems(
  draft: KubeObject,
  stored: KubeObject,
  parts: readonly string[],
): FieldProblem[] {
  if (!flagAt(stored, 'immutable')) return []
  const words = 'field is immutable when `immutable` is set'
  const changed = parts.filter(
    (part) => !isDeepStrictEqual(fieldsAt(draft, part), fieldsAt(stored, part)),
  )
  const locked = flagAt(draft, 'immutable') ? changed : ['immutable', ...changed]
  return locked.map((part) => forbiddenValue(part, words))
}

/** How many bytes a base64 text stands for. */
export const decodedBytes = (base64: string): number => Buffer.byteLength(base64, 'base64')

/** Problems of the keys of a map of data. */
export const dataKeyProblems = (data: Readonly<Record<string, string>>, field: string) =>
  problemsOfEach(Object.keys(data), (key) =>
    invalidEach(`${field}[${key}]`, key, configKeyProblems(key)),
  )

function validate(draft: KubeObject): FieldProblem[] {
  const data = textMapAt(draft, 'data')
  const binaryData = textMapAt(draft, 'binaryData')
  const duplicate = 'duplicate of key present in binaryData'
  const problems = [
    ...problemsOfEach(Object.keys(data), (key) => {
      const field = `data[${key}]`
      const own = invalidEach(field, key, configKeyProblems(key))
      return Object.hasOwn(binaryData, key) ? [...own, invalidValue(field, key, duplicate)] : own
    }),
    ...dataKeyProblems(binaryData, 'binaryData'),
  ]
  let bytes = 0
  for (const value of Object.values(data)) bytes += Buffer.byteLength(value)
  for (const value of Object.values(binaryData)) bytes += decodedBytes(value)
  // Kubernetes writes the path of the whole object like this.
  if (bytes > maxDataBytes) problems.push(tooLong('[]', maxDataBytes))
  return problems
}

/** Settings as text or bytes under keys. */
export const configMap = defineKind({
  kind: wellKnownKinds.configMap,
  shortNames: ['cm'],
  validate,
  validateUpdate: (draft, stored) => immutableDataProblems(draft, stored, ['data', 'binaryData']),
  columns: [
    nameColumn,
    column(
      'Data',
      'Number of keys.',
      (object) =>
        Object.keys(fieldsAt(object, 'data')).length +
        Object.keys(fieldsAt(object, 'binaryData')).length,
    ),
    ageColumn,
  ],
})
