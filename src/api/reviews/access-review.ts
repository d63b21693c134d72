import {
  type Attributes,
  type Authorizer,
  badRequest,
  invalid,
  isRecord,
  type KubeObject,
  type UserInfo,
} from '../../core/index.ts'
import { toCause } from '../validation/field-problem.ts'
import { accessReviewProblems } from './access-problems.ts'

const group = 'authorization.k8s.io'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const record = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []

function extraOf(value: unknown): Record<string, string[]> {
  return Object.fromEntries(Object.entries(record(value)).map(([key, list]) => [key, texts(list)]))
}

/** The user that a SubjectAccessReview is about. */
function subjectOf(spec: Record<string, unknown>): UserInfo {
  return {
    username: text(spec['user']),
    groups: texts(spec['groups']),
    ...(spec['uid'] ? { uid: text(spec['uid']) } : {}),
    extra: extraOf(spec['extra']),
  }
}

function attributesOf(user: UserInfo, spec: Record<string, unknown>): Attributes {
  const nonResource = spec['nonResourceAttributes']
  if (isRecord(nonResource))
    return { user, verb: text(nonResource['verb']), path: text(nonResource['path']) }
  const wanted = record(spec['resourceAttributes'])
  return {
    user,
    verb: text(wanted['verb']),
    resource: {
      group: text(wanted['group']),
      version: text(wanted['version']),
      resource: text(wanted['resource']),
      subresource: text(wanted['subresource']),
      namespace: text(wanted['namespace']),
      name: text(wanted['name']),
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
  const spec = record(object['spec'])
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
  const spec = record(object['spec'])
  const namespace = text(spec['namespace'])
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
