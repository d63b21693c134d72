import type { KubeObject } from '../../core/index.ts'
import {
  type FieldProblem,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../validation/field-problem.ts'
import { asGoStruct } from '../validation/go-format.ts'
import { nameIsDnsSubdomain, pathSegmentProblems } from '../validation/names.ts'
import { ageColumn, column, nameColumn, wideColumn } from './columns.ts'
import { defineKind } from './define-kind.ts'
import { ensureFields, type Fields, fieldsAt, recordsAt, setDefault, textAt } from './fields.ts'
import type { KindDefinition } from './kind-definition.ts'
import { rbacGroup } from './rbac-roles.ts'

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
