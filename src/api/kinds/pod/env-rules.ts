import { isRecord } from '../../../core/index.ts'
import {
  type FieldProblem,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { qualifiedNameProblems } from '../../validation/metadata.ts'
import { configKeyProblems, nameIsDnsSubdomain, type TextRule } from '../../validation/names.ts'
import { type Fields, fieldsAt, recordsAt, textAt } from '../fields.ts'

const nameProblems: TextRule = (name) =>
  /^[ -<>-~]*$/.test(name)
    ? []
    : [
        "a valid environment variable name must consist only of printable ASCII characters other than '='",
      ]

const podFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
// Known to the downward API, but only for files.
const fileOnlyFields = [
  'metadata.annotations',
  'metadata.labels',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]

function subscriptProblems(path: string, key: string, field: string): FieldProblem[] {
  if (path === 'metadata.annotations') {
    return invalidEach(field, key.toLowerCase(), qualifiedNameProblems(key.toLowerCase()))
  }
  if (path === 'metadata.labels') return invalidEach(field, key, qualifiedNameProblems(key))
  const words = `error converting fieldPath: field label does not support subscript: ${path}['${key}']`
  return [invalidValue(`${field}.fieldPath`, `${path}['${key}']`, words)]
}

function fieldRefProblems(ref: Fields, field: string): FieldProblem[] {
  const path = textAt(ref, 'fieldPath')
  const at = `${field}.fieldPath`
  if (!path) return [required(at)]
  const open = path.endsWith("']") ? path.indexOf("['") : -1
  if (open > 0) return subscriptProblems(path.slice(0, open), path.slice(open + 2, -2), field)
  if (podFields.includes(path)) return []
  if (fileOnlyFields.includes(path)) return [notSupported(at, path, podFields)]
  const words = `error converting fieldPath: field label not supported: ${path}`
  return [invalidValue(at, path, words)]
}

function keyRefProblems(ref: Fields, field: string): FieldProblem[] {
  const [name, key] = [textAt(ref, 'name'), textAt(ref, 'key')]
  return [
    ...invalidEach(`${field}.name`, name, nameIsDnsSubdomain(name, false)),
    ...(key
      ? invalidEach(`${field}.key`, key, configKeyProblems(key))
      : [required(`${field}.key`)]),
  ]
}

const sources = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef']

function resourceRefProblems(ref: Fields, field: string): FieldProblem[] {
  return textAt(ref, 'resource') ? [] : [required(`${field}.resource`)]
}

const sourceRules = new Map<string, (ref: Fields, field: string) => FieldProblem[]>([
  ['fieldRef', fieldRefProblems],
  ['resourceFieldRef', resourceRefProblems],
  ['configMapKeyRef', keyRefProblems],
  ['secretKeyRef', keyRefProblems],
])

function valueFromProblems(variable: Fields, field: string): FieldProblem[] {
  if (!isRecord(variable['valueFrom'])) return []
  const from = fieldsAt(variable, 'valueFrom')
  const given = sources.filter((source) => isRecord(from[source]))
  const problems = problemsOfEach(
    given,
    (source) => sourceRules.get(source)?.(fieldsAt(from, source), `${field}.${source}`) ?? [],
  )
  const words =
    given.length === 0
      ? 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
      : textAt(variable, 'value')
        ? 'may not be specified when `value` is not empty'
        : given.length > 1
          ? 'may not have more than one field specified at a time'
          : ''
  return words ? [...problems, invalidValue(field, '', words)] : problems
}

/** Problems of the environment variables of a container. */
export const envProblems = (container: Fields, field: string): FieldProblem[] =>
  problemsOfEach(recordsAt(container, 'env'), (variable, index) => {
    const at = `${field}.env[${index}]`
    const name = textAt(variable, 'name')
    return [
      ...(name ? invalidEach(`${at}.name`, name, nameProblems(name)) : [required(`${at}.name`)]),
      ...valueFromProblems(variable, `${at}.valueFrom`),
    ]
  })

function envSourceProblems(source: Fields, field: string): FieldProblem[] {
  const name = textAt(source, 'name')
  return name
    ? invalidEach(`${field}.name`, name, nameIsDnsSubdomain(name, true))
    : [required(`${field}.name`)]
}

/** Problems of the sources of many environment variables at once. */
export const envFromProblems = (container: Fields, field: string): FieldProblem[] =>
  problemsOfEach(recordsAt(container, 'envFrom'), (from, index) => {
    const at = `${field}.envFrom[${index}]`
    const prefix = textAt(from, 'prefix')
    const given = ['configMapRef', 'secretRef'].filter((source) => isRecord(from[source]))
    const words =
      given.length === 0
        ? 'must specify one of: `configMapRef` or `secretRef`'
        : 'may not have more than one field specified at a time'
    return [
      ...(prefix ? invalidEach(`${at}.prefix`, prefix, nameProblems(prefix)) : []),
      ...problemsOfEach(given, (source) =>
        envSourceProblems(fieldsAt(from, source), `${at}.${source}`),
      ),
      // Kubernetes points at the whole list here.
      ...(given.length === 1 ? [] : [invalidValue(`${field}.envFrom`, '', words)]),
    ]
  })
