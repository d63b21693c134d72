import { goQuote, type KubeObject, type ObjectMeta, type OwnerReference } from '../../core/index.ts'
import type { Allowances, KindDefinition } from '../kinds/define-kind.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
  required,
  tooLong,
  withoutRepeats,
} from './field-problem.ts'
import { dns1123SubdomainProblems, nameIsDnsLabel, patternProblem, type TextRule } from './names.ts'

const keyPattern = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const key = new RegExp(`^${keyPattern}$`)
const keyWords =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const valuePattern = `(${keyPattern})?`
const value = new RegExp(`^${valuePattern}$`)

const keyPatternProblem = (): string =>
  patternProblem(keyWords, keyPattern, 'MyName', 'my.name', '123-abc')

function prefixProblems(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty']
  return dns1123SubdomainProblems(prefix).map(
    // Kubernetes counts in bytes here and in characters where the same text is a name.
    (problem) => `prefix part ${problem.replace(/ characters$/, ' bytes')}`,
  )
}

/** A name with an optional DNS prefix: label and annotation keys, finalizers, signer names. */
export const qualifiedNameProblems: TextRule = (text) => {
  const parts = text.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2) {
    return [
      `a valid label key ${keyPatternProblem()} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const problems = parts.length === 2 ? prefixProblems(parts[0] ?? '') : []
  if (name === '') problems.push('name part must be non-empty')
  else if (Buffer.byteLength(name) > 63) problems.push('name part must be no more than 63 bytes')
  if (!key.test(name)) problems.push(`name part ${keyPatternProblem()}`)
  return problems
}

/** The value of a label. */
export const labelValueProblems: TextRule = (text) => {
  const problems = Buffer.byteLength(text) > 63 ? ['must be no more than 63 bytes'] : []
  if (value.test(text)) return problems
  return [
    ...problems,
    patternProblem(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
      valuePattern,
      'MyValue',
      'my_value',
      '12345',
    ),
  ]
}

const maxAnnotationBytes = 256 * 1024
const orphanFinalizer = 'orphan'
const foregroundFinalizer = 'foregroundDeletion'
const standardFinalizers = new Set(['kubernetes', orphanFinalizer, foregroundFinalizer])

/** Problems of labels, as `metadata.labels` and selectors have them. */
export function labelProblems(
  labels: Readonly<Record<string, string>>,
  field: string,
): FieldProblem[] {
  return problemsOfEach(Object.entries(labels), ([key, value]) => [
    ...invalidEach(field, key, qualifiedNameProblems(key)),
    ...invalidEach(field, value, labelValueProblems(value)),
  ])
}

function annotationProblems(annotations: Readonly<Record<string, string>>): FieldProblem[] {
  const field = 'metadata.annotations'
  const entries = Object.entries(annotations)
  const problems = problemsOfEach(entries, ([key]) =>
    invalidEach(field, key, qualifiedNameProblems(key.toLowerCase())),
  )
  const bytes = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  return bytes > maxAnnotationBytes ? [...problems, tooLong(field, maxAnnotationBytes)] : problems
}

function ownerProblems(owner: OwnerReference): FieldProblem[] {
  const field = 'metadata.ownerReferences'
  const [first = '', second] = (owner.apiVersion ?? '').split('/')
  const problems: FieldProblem[] = []
  if ((second ?? first) === '') {
    problems.push(
      invalidValue(`${field}.apiVersion`, owner.apiVersion, 'version must not be empty'),
    )
  }
  for (const part of ['kind', 'name', 'uid'] as const) {
    if (owner[part]) continue
    problems.push(invalidValue(`${field}.${part}`, owner[part] ?? '', 'must not be empty'))
  }
  if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
    problems.push(invalidValue(field, owner, '/v1, Kind=Event is disallowed from being an owner'))
  }
  return problems
}

function ownersProblems(owners: readonly OwnerReference[]): FieldProblem[] {
  const problems: FieldProblem[] = []
  let controller = ''
  for (const owner of owners) {
    problems.push(...ownerProblems(owner))
    if (!owner.controller) continue
    const current = `${owner.kind}/${owner.name}`
    if (controller) {
      problems.push(
        invalidValue(
          'metadata.ownerReferences',
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`,
        ),
      )
    } else controller = current
  }
  return problems
}

/** Problems of a finalizer whose name belongs to nobody. */
export function unqualifiedProblems(name: string, field: string): FieldProblem[] {
  if (name.includes('/') || standardFinalizers.has(name)) return []
  const detail = 'name is neither a standard finalizer name nor is it fully qualified'
  return [invalidValue(field, name, detail)]
}

function finalizerProblems(finalizers: readonly string[]): FieldProblem[] {
  const field = 'metadata.finalizers'
  const detail = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`
  const excludeEachOther =
    finalizers.includes(orphanFinalizer) && finalizers.includes(foregroundFinalizer)
  return [
    ...problemsOfEach(finalizers, (name) => invalidEach(field, name, qualifiedNameProblems(name))),
    ...(excludeEachOther ? [invalidValue(field, finalizers, detail)] : []),
    ...problemsOfEach(finalizers, (name, index) => unqualifiedProblems(name, `${field}[${index}]`)),
  ]
}

function nameProblems(metadata: ObjectMeta, definition: KindDefinition): FieldProblem[] {
  const { name, generateName } = metadata
  const problems = generateName
    ? invalidEach(
        'metadata.generateName',
        generateName,
        definition.nameProblems(generateName, true),
      )
    : []
  if (!name) return [...problems, required('metadata.name', 'name or generateName is required')]
  return [...problems, ...invalidEach('metadata.name', name, definition.nameProblems(name, false))]
}

function namespaceProblems(metadata: ObjectMeta, namespaced: boolean): FieldProblem[] {
  const field = 'metadata.namespace'
  const { namespace = '' } = metadata
  if (!namespaced) return namespace ? [forbiddenValue(field, 'not allowed on this type')] : []
  if (namespace === '') return [required(field)]
  return invalidEach(field, namespace, nameIsDnsLabel(namespace, false))
}

/** Every problem of `metadata` by itself, on create and update. */
export function validateMetadata(draft: KubeObject, definition: KindDefinition): FieldProblem[] {
  const { metadata } = draft
  const generation = metadata.generation ?? 0
  return [
    ...nameProblems(metadata, definition),
    ...namespaceProblems(metadata, definition.kind.namespaced),
    ...(generation < 0
      ? [invalidValue('metadata.generation', generation, 'must be greater than or equal to 0')]
      : []),
    ...labelProblems(metadata.labels ?? {}, 'metadata.labels'),
    ...annotationProblems(metadata.annotations ?? {}),
    ...ownersProblems(metadata.ownerReferences ?? []),
    ...finalizerProblems(metadata.finalizers ?? []),
  ]
}

function newFinalizerProblems(metadata: ObjectMeta, stored: ObjectMeta): FieldProblem[] {
  if (stored.deletionTimestamp === undefined) return []
  const known = new Set(stored.finalizers)
  const added = [...new Set(metadata.finalizers)].filter((name) => !known.has(name)).sort()
  if (added.length === 0) return []
  return [
    forbiddenValue(
      'metadata.finalizers',
      `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map(goQuote).join(', ')}}`,
    ),
  ]
}

/** The words for a field that may not change. */
export const fieldIsImmutable = 'field is immutable'

/** What stands for an absent value of the fields that may not change. */
const immutableFields = {
  name: '',
  namespace: '',
  uid: '',
  creationTimestamp: null,
  deletionTimestamp: null,
  deletionGracePeriodSeconds: null,
} as const

/** Every problem of the change of `metadata`: what may not change, and finalizers of the dying. */
export function validateMetadataUpdate(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const { metadata } = draft
  const problems = newFinalizerProblems(metadata, stored.metadata)
  if (!metadata.resourceVersion) {
    problems.push(invalidValue('metadata.resourceVersion', '', 'must be specified for an update'))
  }
  const fields = Object.entries(immutableFields) as [keyof typeof immutableFields, '' | null][]
  for (const [field, absent] of fields) {
    const sent = metadata[field] ?? absent
    if (sent === (stored.metadata[field] ?? absent)) continue
    problems.push(invalidValue(`metadata.${field}`, sent, fieldIsImmutable))
  }
  return problems
}

/** Every problem of a new object, in Kubernetes' order. */
export const validateCreate = (
  definition: KindDefinition,
  draft: KubeObject,
  allowances: Allowances = {},
): FieldProblem[] => [
  ...validateMetadata(draft, definition),
  ...definition.validate(draft, allowances),
]

/** Every problem of a changed object, in Kubernetes' order, each once. */
export const validateUpdate = (
  definition: KindDefinition,
  draft: KubeObject,
  stored: KubeObject,
  allowances: Allowances = {},
): FieldProblem[] =>
  withoutRepeats([
    ...validateMetadata(draft, definition),
    ...validateMetadataUpdate(draft, stored),
    ...definition.validateUpdate(draft, stored),
    ...definition.validate(draft, allowances),
  ])
