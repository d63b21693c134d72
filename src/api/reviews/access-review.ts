import {
  type Attributes,
  type Authorizer,
  badRequest,
  invalid,
  isRecord,
  type KubeObject,
  type UserInfo,
} from '../../core/index.ts'
import { type Fields, fieldsAt, textAt, textsAt } from '../kinds/fields.ts'
import { toCause } from '../validation/field-problem.ts'
import { accessReviewProblems } from './access-problems.ts'

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
