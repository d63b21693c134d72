import { isRecord, type KubeObject } from '../../core/index.ts'
import { type Fields, fieldsAt, recordsAt, textAt, textsAt } from '../kinds/fields.ts'
import { asGoStruct } from '../validation/go-format.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  required,
} from '../validation/index.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/label-rules.ts'

/** Operators that are not known here may be known to a newer authorizer, so they pass. */
function valuesProblems(requirement: Fields, field: string): FieldProblem[] {
  const operator = textAt(requirement, 'operator')
  const values = textsAt(requirement, 'values')
  const isIn = operator === 'In' || operator === 'NotIn'
  const isExists = operator === 'Exists' || operator === 'DoesNotExist'
  if (isIn && values.length === 0)
    return [required(field, "must be specified when `operator` is 'In' or 'NotIn'")]
  if (isExists && values.length > 0)
    return [
      forbiddenValue(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
    ]
  return []
}

type RequirementRule = (requirement: Fields, field: string) => FieldProblem[]

const fieldRequirement: RequirementRule = (requirement, field) => [
  ...(textAt(requirement, 'key') === '' ? [required(`${field}.key`, 'must be specified')] : []),
  ...valuesProblems(requirement, `${field}.values`),
]

const labelRequirement: RequirementRule = (requirement, field) => {
  const key = textAt(requirement, 'key')
  return [
    ...valuesProblems(requirement, `${field}.values`),
    ...invalidEach(`${field}.key`, key, qualifiedNameProblems(key)),
    ...textsAt(requirement, 'values').flatMap((value, index) =>
      invalidEach(`${field}.values[${index}]`, value, labelValueProblems(value)),
    ),
  ]
}

function selectorProblems(selector: unknown, field: string, rule: RequirementRule): FieldProblem[] {
  if (!isRecord(selector)) return []
  const raw = textAt(selector, 'rawSelector')
  const requirements = recordsAt(selector, 'requirements')
  const both = 'may not specified at the same time as requirements'
  const none = `when ${field} is specified, requirements or rawSelector is required`
  return [
    ...(raw && requirements.length > 0 ? [invalidValue(`${field}.rawSelector`, raw, both)] : []),
    ...(!raw && requirements.length === 0 ? [required(`${field}.requirements`, none)] : []),
    ...requirements.flatMap((one, index) => rule(one, `${field}.requirements[${index}]`)),
  ]
}

const shownPath = (attributes: unknown): unknown =>
  isRecord(attributes) ? asGoStruct(attributes, { Path: 'path', Verb: 'verb' }) : attributes

function specProblems(kind: string, spec: Fields): FieldProblem[] {
  const { resourceAttributes: resource, nonResourceAttributes: path } = spec
  const problems: FieldProblem[] = []
  const add = (field: string, value: unknown, why: string) =>
    problems.push(invalidValue(`spec.${field}`, value, why))
  if (resource !== undefined && path !== undefined)
    add(
      'nonResourceAttributes',
      shownPath(path),
      'cannot be specified in combination with resourceAttributes',
    )
  if (resource === undefined && path === undefined)
    add(
      'resourceAttributes',
      resource,
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
    )
  const isAboutAsker = kind === 'SelfSubjectAccessReview'
  if (!isAboutAsker && !spec['user'] && textsAt(spec, 'groups').length === 0)
    add('user', '', 'at least one of user or group must be specified')
  if (!isRecord(resource)) return problems
  const field = 'spec.resourceAttributes'
  return [
    ...problems,
    ...selectorProblems(resource['fieldSelector'], `${field}.fieldSelector`, fieldRequirement),
    ...selectorProblems(resource['labelSelector'], `${field}.labelSelector`, labelRequirement),
  ]
}

function metadataProblems({ kind, metadata }: KubeObject): FieldProblem[] {
  const { name, namespace, ...others } = metadata
  if (name === '' && Object.keys(others).length === 0) return []
  const isLocal = kind === 'LocalSubjectAccessReview'
  const shown = { ...(name && { name }), ...(namespace && { namespace }), ...others }
  const why = isLocal ? 'must be empty except for namespace' : 'must be empty'
  return [invalidValue('metadata', shown, why)]
}

function localProblems(spec: Fields, namespace: string): FieldProblem[] {
  const { resourceAttributes: resource, nonResourceAttributes: path } = spec
  const field = 'spec.resourceAttributes.namespace'
  const asked = isRecord(resource) ? textAt(resource, 'namespace') : namespace
  return [
    ...(asked === namespace ? [] : [invalidValue(field, asked, 'must match metadata.namespace')]),
    ...(path === undefined
      ? []
      : [
          invalidValue(
            'spec.nonResourceAttributes',
            shownPath(path),
            'disallowed on this kind of request',
          ),
        ]),
  ]
}

/** Every problem of a SubjectAccessReview or one of its Local and Self forms. */
export function accessReviewProblems(object: KubeObject): FieldProblem[] {
  const { kind, metadata } = object
  const spec = fieldsAt(object, 'spec')
  return [
    ...specProblems(kind, spec),
    ...metadataProblems(object),
    ...(kind === 'LocalSubjectAccessReview' ? localProblems(spec, metadata.namespace ?? '') : []),
  ]
}
