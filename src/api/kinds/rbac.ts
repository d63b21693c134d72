import { isRecord, type KubeObject } from '../../core/index.ts'
import {
  asGoStruct,
  type FieldProblem,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
  tooMany,
} from '../validation/field-problem.ts'
import { labelSelectorProblems } from '../validation/label-selectors.ts'
import { nameIsDnsSubdomain, pathSegmentProblems } from '../validation/names.ts'
import {
  ageColumn,
  column,
  createdAtColumn,
  defineKind,
  type KindDefinition,
  nameColumn,
  wideColumn,
} from './define-kind.ts'
import {
  ensureFields,
  type Fields,
  fieldsAt,
  recordsAt,
  setDefault,
  textAt,
  textsAt,
} from './fields.ts'

/** The API group of the four RBAC kinds. */
const rbacGroup = 'rbac.authorization.k8s.io'

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
const maxRights = 25_000

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

function applyDefaults(draft: KubeObject): void {
  setDefault(ensureFields(draft, 'roleRef'), 'apiGroup', rbacGroup)
  for (const subject of recordsAt(draft, 'subjects')) {
    if (['User', 'Group'].includes(textAt(subject, 'kind'))) {
      setDefault(subject, 'apiGroup', rbacGroup)
    }
  }
}

function roleRefProblems(draft: KubeObject, kinds: readonly string[]): FieldProblem[] {
  const ref = fieldsAt(draft, 'roleRef')
  const [apiGroup, kind, name] = [textAt(ref, 'apiGroup'), textAt(ref, 'kind'), textAt(ref, 'name')]
  return [
    ...(apiGroup === rbacGroup ? [] : [notSupported('roleRef.apiGroup', apiGroup, [rbacGroup])]),
    ...(kinds.includes(kind) ? [] : [notSupported('roleRef.kind', kind, kinds)]),
    ...(name
      ? invalidEach('roleRef.name', name, pathSegmentProblems(name))
      : [required('roleRef.name')]),
  ]
}

function serviceAccountProblems(
  subject: Fields,
  namespaced: boolean,
  field: string,
): FieldProblem[] {
  const name = textAt(subject, 'name')
  const apiGroup = textAt(subject, 'apiGroup')
  return [
    ...(name ? invalidEach(`${field}.name`, name, nameIsDnsSubdomain(name, false)) : []),
    ...(apiGroup ? [notSupported(`${field}.apiGroup`, apiGroup, [''])] : []),
    ...(namespaced || textAt(subject, 'namespace') ? [] : [required(`${field}.namespace`)]),
  ]
}

function subjectProblems(subject: Fields, namespaced: boolean, field: string): FieldProblem[] {
  const kind = textAt(subject, 'kind')
  const apiGroup = textAt(subject, 'apiGroup')
  const problems = textAt(subject, 'name') ? [] : [required(`${field}.name`)]
  switch (kind) {
    case 'ServiceAccount':
      return [...problems, ...serviceAccountProblems(subject, namespaced, field)]
    case 'User':
    case 'Group':
      if (apiGroup === rbacGroup) return problems
      return [...problems, notSupported(`${field}.apiGroup`, apiGroup, [rbacGroup])]
    default:
      return [...problems, notSupported(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  }
}

function validateUpdate(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const [ref, old] = [fieldsAt(draft, 'roleRef'), fieldsAt(stored, 'roleRef')]
  const same = ['apiGroup', 'kind', 'name'].every((part) => textAt(ref, part) === textAt(old, part))
  const shown = asGoStruct(ref, { APIGroup: 'apiGroup', Kind: 'kind', Name: 'name' })
  return same ? [] : [invalidValue('roleRef', shown, 'cannot change roleRef')]
}

const subjectsOf = (object: KubeObject, kind: string): string =>
  recordsAt(object, 'subjects')
    .filter((subject) => subject['kind'] === kind)
    .map((subject) =>
      kind === 'ServiceAccount'
        ? `${textAt(subject, 'namespace')}/${textAt(subject, 'name')}`
        : textAt(subject, 'name'),
    )
    .join(', ')

const binding = (kind: KindDefinition['kind'], roleKinds: readonly string[]): KindDefinition =>
  defineKind({
    kind,
    createOnUpdate: true,
    nameProblems: pathSegmentProblems,
    applyDefaults,
    validate: (draft) => [
      ...roleRefProblems(draft, roleKinds),
      ...problemsOfEach(recordsAt(draft, 'subjects'), (subject, index) =>
        subjectProblems(subject, kind.namespaced, `subjects[${index}]`),
      ),
    ],
    validateUpdate,
    columns: [
      nameColumn,
      column('Role', 'The role whose rules are given.', (object) => {
        const ref = fieldsAt(object, 'roleRef')
        return `${textAt(ref, 'kind')}/${textAt(ref, 'name')}`
      }),
      ageColumn,
      wideColumn('Users', 'Users that get the role.', (object) => subjectsOf(object, 'User')),
      wideColumn('Groups', 'Groups that get the role.', (object) => subjectsOf(object, 'Group')),
      wideColumn('ServiceAccounts', 'Service accounts that get the role.', (object) =>
        subjectsOf(object, 'ServiceAccount'),
      ),
    ],
  })

/** Gives a role's rules to subjects in one namespace. */
export const roleBinding = binding(
  {
    group: rbacGroup,
    version: 'v1',
    kind: 'RoleBinding',
    resource: 'rolebindings',
    namespaced: true,
  },
  ['Role', 'ClusterRole'],
)

/** Gives a role's rules to subjects everywhere. */
export const clusterRoleBinding = binding(
  {
    group: rbacGroup,
    version: 'v1',
    kind: 'ClusterRoleBinding',
    resource: 'clusterrolebindings',
    namespaced: false,
  },
  ['ClusterRole'],
)
