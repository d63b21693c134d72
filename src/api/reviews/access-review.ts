import {
  type Attributes,
  type Authorizer,
  badRequest,
  invalid,
  isRecord,
  type KubeObject,
  type UserInfo,
} from '../../core/index.ts'
import { type Fields, fieldsAt, recordsAt, textAt, textsAt } from '../kinds/fields.ts'
import { asGoStruct, toCause } from '../validation/field-problem.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  required,
} from '../validation/index.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/metadata.ts'

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

const group = 'authorization.k8s.io'

const extraOf = (extra: Fields): Record<string, string[]> =>
  Object.fromEntries(Object.keys(extra).map((key) => [key, textsAt(extra, key)]))

/** The user that a SubjectAccessReview is about. */
function subjectOf(spec: Fields): UserInfo {
  const uid = textAt(spec, 'uid')
  return {
    username: textAt(spec, 'user'),
    groups: textsAt(spec, 'groups'),
    ...(uid && { uid }),
    extra: extraOf(fieldsAt(spec, 'extra')),
  }
}

function attributesOf(user: UserInfo, spec: Fields): Attributes {
  const nonResource = spec['nonResourceAttributes']
  if (isRecord(nonResource))
    return { user, verb: textAt(nonResource, 'verb'), path: textAt(nonResource, 'path') }
  const wanted = fieldsAt(spec, 'resourceAttributes')
  return {
    user,
    verb: textAt(wanted, 'verb'),
    resource: {
      group: textAt(wanted, 'group'),
      version: textAt(wanted, 'version'),
      resource: textAt(wanted, 'resource'),
      subresource: textAt(wanted, 'subresource'),
      namespace: textAt(wanted, 'namespace'),
      name: textAt(wanted, 'name'),
    },
  }
}

/** Answers SubjectAccessReview and its Local and Self forms: may they? */
export async function reviewAccess(
  object: KubeObject,
  asker: UserInfo,
  authorizer: Authorizer,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { kind } = object
  const problems = accessReviewProblems(object)
  if (problems.length > 0) throw invalid({ group, kind }, '', problems.map(toCause))
  const spec = fieldsAt(object, 'spec')
  const user = kind === 'SelfSubjectAccessReview' ? asker : subjectOf(spec)
  const decision = await authorizer.authorize(attributesOf(user, spec), signal)
  const status = {
    allowed: decision.allowed,
    ...(decision.denied && { denied: true }),
    ...(decision.reason && { reason: decision.reason }),
    ...(decision.evaluationError && { evaluationError: decision.evaluationError }),
  }
  return { ...object, spec, status }
}

/** Answers SelfSubjectRulesReview: everything the asker may do in a namespace. */
export async function reviewRules(
  object: KubeObject,
  asker: UserInfo,
  authorizer: Authorizer,
  signal: AbortSignal,
): Promise<KubeObject> {
  const spec = fieldsAt(object, 'spec')
  const namespace = textAt(spec, 'namespace')
  if (!namespace) throw badRequest('no namespace on request')
  const rules = await authorizer.rulesFor(asker, namespace, signal)
  const status = {
    resourceRules: rules.resourceRules,
    nonResourceRules: rules.nonResourceRules,
    incomplete: rules.incomplete,
    ...(rules.evaluationError && { evaluationError: rules.evaluationError }),
  }
  const { kind, apiVersion } = object
  return { kind, apiVersion, metadata: { name: '' }, spec: {}, status }
}
