import { isRecord, type KubeObject } from '../../core/index.ts'
import {
  type FieldProblem,
  invalidValue,
  problemsOfEach,
  required,
  tooMany,
} from '../validation/field-problem.ts'
import { labelSelectorProblems } from '../validation/label-selector-rules.ts'
import { pathSegmentProblems } from '../validation/names.ts'
import { createdAtColumn, nameColumn } from './columns.ts'
import { defineKind } from './define-kind.ts'
import { type Fields, fieldsAt, recordsAt, textsAt } from './fields.ts'

/** The API group of the four RBAC kinds. */
export const rbacGroup = 'rbac.authorization.k8s.io'

function pathRuleProblems(rule: Fields, namespaced: boolean, field: string): FieldProblem[] {
  const paths = textsAt(rule, 'nonResourceURLs')
  const mixed = ['apiGroups', 'resources', 'resourceNames'].some(
    (part) => textsAt(rule, part).length > 0,
  )
  const words = [
    ...(namespaced ? ['namespaced rules cannot apply to non-resource URLs'] : []),
    ...(mixed ? ['rules cannot apply to both regular resources and non-resource URLs'] : []),
  ]
  return words.map((detail) => invalidValue(`${field}.nonResourceURLs`, paths, detail))
}

const mustHave = (rule: Fields, field: string, part: string, words: string): FieldProblem[] =>
  textsAt(rule, part).length > 0 ? [] : [required(`${field}.${part}`, words)]

function ruleProblems(rule: Fields, namespaced: boolean, field: string): FieldProblem[] {
  const problems = mustHave(rule, field, 'verbs', 'verbs must contain at least one value')
  if (textsAt(rule, 'nonResourceURLs').length > 0) {
    return [...problems, ...pathRuleProblems(rule, namespaced, field)]
  }
  return [
    ...problems,
    ...mustHave(rule, field, 'apiGroups', 'resource rules must supply at least one api group'),
    ...mustHave(rule, field, 'resources', 'resource rules must supply at least one resource'),
  ]
}

/** More than anybody writes by hand; a few short lists could otherwise stand for billions of rights. */
const maxRights = 50_000

/** How many single rights a rule stands for: each verb on each resource of each group, by each name. */
function rightsOf(rule: Fields): number {
  const [verbs = 0, groups = 0, resources = 0, names = 0, paths = 0] = [
    'verbs',
    'apiGroups',
    'resources',
    'resourceNames',
    'nonResourceURLs',
  ].map((part) => textsAt(rule, part).length)
  return verbs * (groups * resources * Math.max(1, names) + paths)
}

function rulesProblems(draft: KubeObject, namespaced: boolean): FieldProblem[] {
  const rules = recordsAt(draft, 'rules')
  const rights = rules.reduce((sum, rule) => sum + rightsOf(rule), 0)
  if (rights > maxRights) return [tooMany('rules', rights, maxRights)]
  return problemsOfEach(rules, (rule, index) => ruleProblems(rule, namespaced, `rules[${index}]`))
}

function aggregationProblems(draft: KubeObject): FieldProblem[] {
  if (!isRecord(draft['aggregationRule'])) return []
  const field = 'aggregationRule.clusterRoleSelectors'
  const selectors = recordsAt(fieldsAt(draft, 'aggregationRule'), 'clusterRoleSelectors')
  if (selectors.length === 0) {
    const words = 'at least one clusterRoleSelector required if aggregationRule is non-nil'
    return [required(field, words)]
  }
  return problemsOfEach(selectors, (selector, index) => {
    const at = `${field}[${index}]`
    const problems = labelSelectorProblems(selector, at)
    if (problems.length > 0) problems.push(invalidValue(at, null, 'invalid label selector.'))
    return problems
  })
}

// `rules` is on the wire even when there are none.
const showRules = (draft: KubeObject): void => {
  draft['rules'] ??= null
}

/** Rules that hold in one namespace. */
export const role = defineKind({
  kind: { group: rbacGroup, version: 'v1', kind: 'Role', resource: 'roles', namespaced: true },
  createOnUpdate: true,
  nameProblems: pathSegmentProblems,
  applyDefaults: showRules,
  validate: (draft) => rulesProblems(draft, true),
  columns: [nameColumn, createdAtColumn],
})

/** Rules that can hold everywhere. */
export const clusterRole = defineKind({
  kind: {
    group: rbacGroup,
    version: 'v1',
    kind: 'ClusterRole',
    resource: 'clusterroles',
    namespaced: false,
  },
  createOnUpdate: true,
  nameProblems: pathSegmentProblems,
  applyDefaults: showRules,
  validate: (draft) => [...rulesProblems(draft, false), ...aggregationProblems(draft)],
  columns: [nameColumn, createdAtColumn],
})
