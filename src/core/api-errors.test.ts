import { expect, test } from 'vitest'
import { alreadyExists, conflict, forbidden, invalid, notFound } from './errors.ts'

const roles = { group: 'rbac.authorization.k8s.io', resource: 'roles' }
const odd = 'a "b"\n'

test.each([
  [notFound(roles, odd), 'roles.rbac.authorization.k8s.io "a \\"b\\"\\n" not found'],
  [alreadyExists(roles, odd), 'roles.rbac.authorization.k8s.io "a \\"b\\"\\n" already exists'],
  [
    conflict(roles, odd, 'why'),
    'Operation cannot be fulfilled on roles.rbac.authorization.k8s.io "a \\"b\\"\\n": why',
  ],
  [
    forbidden(roles, odd, 'why'),
    'roles.rbac.authorization.k8s.io "a \\"b\\"\\n" is forbidden: why',
  ],
  [
    invalid({ group: roles.group, kind: 'Role' }, odd, [{ message: 'why' }]),
    'Role.rbac.authorization.k8s.io "a \\"b\\"\\n" is invalid: why',
  ],
])('a name in a message is quoted as Go quotes it: %s', (error, message) => {
  expect(error.message).toBe(message)
})
