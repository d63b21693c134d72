import { describe, expect, test } from 'vitest'
import { denial } from '../authz/index.ts'
import type { Attributes, Authentication, Authorizer } from '../core/index.ts'
import { requestWith } from './authentication-request.suite.ts'
import { impersonation } from './impersonation.ts'

const signal = new AbortController().signal
const admin: Authentication = {
  user: { username: 'admin', groups: ['ops'] },
  method: 'test',
  credential: { type: 'certificate', serial: '01' },
  expiresAt: 9_000,
}

const shown = ({ verb, resource }: Attributes) =>
  [
    verb,
    `${resource?.resource}.${resource?.group}`,
    resource?.subresource,
    resource?.namespace,
    resource?.name,
  ]
    .filter((part) => part !== '')
    .join(' ')

/** Allows everything but what is listed, and writes down what it was asked. */
function authorizerWithout(...refused: string[]) {
  const asked: string[] = []
  const authorizer: Authorizer = {
    authorize: (attributes) => {
      if (isConstrained(attributes)) return { allowed: false, reason: '' }
      asked.push(shown(attributes))
      return { allowed: !refused.includes(shown(attributes)), reason: '' }
    },
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
  }
  return { asked, authorizer }
}

type Headers = readonly (readonly [string, string])[]

const listing = {
  verb: 'list',
  resource: {
    group: '',
    version: 'v1',
    resource: 'configmaps',
    subresource: '',
    namespace: 'shop',
    name: '',
  },
}

/** The rights that an authorizer gives only when it gives them for one action. */
const isConstrained = ({ verb }: Attributes): boolean => verb.startsWith('impersonate-on:')

const actAs = async (headers: Headers, authorizer = authorizerWithout().authorizer, as = admin) =>
  impersonation({ authorizer, denial })(requestWith(headers), as, listing, signal)

describe('impersonation', () => {
  test('is not asked for: the very same identity acts', async () => {
    expect(await actAs([['Accept', '*/*']])).toBe(admin)
    expect(await actAs([['Impersonate_User', 'root']])).toBe(admin)
  })

  test('takes user, uid, groups and extras, each allowed by itself [GND-R76]', async () => {
    const { asked, authorizer } = authorizerWithout()
    const acting = await actAs(
      [
        ['impersonate-user', 'jane'],
        ['Impersonate-Group', 'dev'],
        ['Impersonate-Group', 'qa, and more'],
        ['Impersonate-Uid', 'u-1'],
        ['Impersonate-Extra-Scopes', 'read'],
        ['Impersonate-Extra-scopes', 'write'],
        ['Impersonate-Extra-Acme.com%2FProject', 'x'],
      ],
      authorizer,
    )
    expect(acting).toEqual({
      ...admin,
      impersonator: admin.user,
      user: {
        username: 'jane',
        uid: 'u-1',
        groups: ['dev', 'qa, and more', 'system:authenticated'],
        extra: { scopes: ['read', 'write'], 'acme.com/project': ['x'] },
      },
    })
    expect(asked).toEqual([
      'impersonate users. jane',
      'impersonate groups. dev',
      'impersonate groups. qa, and more',
      'impersonate userextras.authentication.k8s.io scopes read',
      'impersonate userextras.authentication.k8s.io scopes write',
      'impersonate userextras.authentication.k8s.io acme.com/project x',
      'impersonate uids.authentication.k8s.io u-1',
    ])
  })

  test.each([
    [
      'impersonate users. jane',
      'users "jane" is forbidden: User "admin" cannot impersonate resource "users" in API group "" at the cluster scope',
    ],
    [
      'impersonate groups. system:masters',
      'groups "system:masters" is forbidden: User "admin" cannot impersonate resource "groups" in API group "" at the cluster scope',
    ],
    [
      'impersonate userextras.authentication.k8s.io scopes read',
      'userextras.authentication.k8s.io "read" is forbidden: User "admin" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
    ],
    [
      'impersonate uids.authentication.k8s.io u-1',
      'uids.authentication.k8s.io "u-1" is forbidden: User "admin" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope',
    ],
  ])('without the right to %s is 403 [GND-R76]', async (refused, message) => {
    const headers: Headers = [
      ['Impersonate-User', 'jane'],
      ['Impersonate-Group', 'system:masters'],
      ['Impersonate-Uid', 'u-1'],
      ['Impersonate-Extra-Scopes', 'read'],
    ]
    await expect(actAs(headers, authorizerWithout(refused).authorizer)).rejects.toMatchObject({
      reason: 'Forbidden',
      message,
    })
  })

  test('of a service account asks for that, and gives its groups [GND-R76]', async () => {
    const { asked, authorizer } = authorizerWithout()
    const name = 'system:serviceaccount:ci:builder'
    const acting = await actAs([['Impersonate-User', name]], authorizer)
    expect(asked).toEqual(['impersonate serviceaccounts. ci builder'])
    expect(acting.user).toEqual({
      username: name,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:ci', 'system:authenticated'],
    })
  })

  test.each([
    'system:serviceaccount:ci',
    'system:serviceaccount:ci:a:b',
    'system:serviceaccount:Ci:builder',
    'system:serviceaccount:ci:',
    'system:serviceaccount::builder',
    'system:serviceaccount:ci:../x',
    'system:serviceaccount:ci:a..b',
    `system:serviceaccount:${'n'.repeat(64)}:builder`,
  ])('of %s is of a user, not of a service account', async (name) => {
    const { asked, authorizer } = authorizerWithout()
    await actAs([['Impersonate-User', name]], authorizer)
    expect(asked).toEqual([`impersonate users. ${name}`])
  })

  test.each([
    ['jane', [], ['system:authenticated']],
    ['jane', ['a'], ['a', 'system:authenticated']],
    ['jane', ['system:authenticated'], ['system:authenticated']],
    ['jane', ['system:unauthenticated'], ['system:unauthenticated']],
    ['system:serviceaccount:ci:x', ['a'], ['a', 'system:authenticated']],
    ['system:anonymous', [], ['system:unauthenticated']],
    ['system:anonymous', ['a'], ['a', 'system:unauthenticated']],
    ['system:anonymous', ['system:unauthenticated'], ['system:unauthenticated']],
  ])('of %s in %j is in %j [GND-R76]', async (name, groups, expected) => {
    const acting = await actAs([
      ['Impersonate-User', name],
      ...groups.map((group) => ['Impersonate-Group', group] as const),
    ])
    expect(acting.user.groups).toEqual(expected)
  })

  test.each([
    [
      'groups without a user',
      [['Impersonate-Group', 'a']],
      'requested groups without impersonating a user name',
    ],
    [
      'a uid without a user',
      [['Impersonate-Uid', 'a']],
      'requested a uid without impersonating a user name',
    ],
    [
      'extras without a user',
      [['Impersonate-Extra-A', 'a']],
      'requested extras without impersonating a user name',
    ],
    ['an empty user', [['Impersonate-User', '']], 'Impersonate-User is empty'],
    [
      'two users',
      [
        ['Impersonate-User', 'a'],
        ['impersonate-user', 'b'],
      ],
      'Impersonate-User is there more than once',
    ],
    [
      'two uids',
      [
        ['Impersonate-User', 'a'],
        ['Impersonate-Uid', '1'],
        ['Impersonate-Uid', '2'],
      ],
      'Impersonate-Uid is there more than once',
    ],
    [
      'an extra without a key',
      [
        ['Impersonate-User', 'a'],
        ['Impersonate-Extra-', 'x'],
      ],
      'an Impersonate-Extra- header names no key',
    ],
    [
      'a name that is not UTF-8',
      [['Impersonate-User', 'jos\u00e9']],
      'an impersonation header is not UTF-8, or its key is not percent-encoded',
    ],
  ] satisfies [string, Headers, string][])(
    'with %s is 400 [GND-R76]',
    async (_what, headers, message) => {
      await expect(actAs(headers)).rejects.toMatchObject({ reason: 'BadRequest', message })
    },
  )

  test('of a machine is refused to everybody, whatever they may do', async () => {
    const machine: Headers = [
      ['Impersonate-User', 'system:sallyport:machine:laptop'],
      ['Impersonate-Group', 'system:sallyport:machines'],
    ]
    await expect(actAs(machine)).rejects.toMatchObject({
      reason: 'Forbidden',
      message:
        'groups "system:sallyport:machines" is forbidden: User "admin" cannot impersonate resource "groups" in API group "" at the cluster scope: only a machine itself can act as a machine',
    })
    expect(await actAs(machine.slice(0, 1))).toMatchObject({ impersonator: admin.user })
  })

  test('does not widen a credential’s scope [GND-R75]', async () => {
    const scoped = { ...admin, scope: { name: 'cluster-info', permits: () => false } }
    await expect(
      actAs([['Impersonate-User', 'jane']], authorizerWithout().authorizer, scoped),
    ).rejects.toThrow('the credential may only be used for cluster-info')
    const open = { ...admin, scope: { name: 'all', permits: () => true } }
    const acting = await actAs([['Impersonate-User', 'jane']], authorizerWithout().authorizer, open)
    expect(acting.scope).toBe(open.scope)
  })
})

describe('impersonation for one action', () => {
  /** Allows these and nothing else. */
  const only = (...given: string[]): Authorizer => ({
    authorize: (attributes) => ({ allowed: given.includes(shown(attributes)), reason: '' }),
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
  })
  const jane: Headers = [
    ['Impersonate-User', 'jane'],
    ['Impersonate-Group', 'dev'],
  ]
  const identity = [
    'impersonate:user-info users.authentication.k8s.io jane',
    'impersonate:user-info groups.authentication.k8s.io dev',
  ]
  const action = 'impersonate-on:user-info:list configmaps. shop'

  test('takes a right on the identity and one on what is done [ADDON-R24]', async () => {
    const acting = await actAs(jane, only(...identity, action))
    expect(acting.user).toEqual({ username: 'jane', groups: ['dev', 'system:authenticated'] })
    expect(acting.impersonator?.username).toBe('admin')
  })

  test.each([
    ['the action', identity],
    ['the user', [...identity.slice(1), action]],
    ['the group', [...identity.slice(0, 1), action]],
    ['another action', [...identity, 'impersonate-on:user-info:get configmaps. shop']],
    ['another namespace', [...identity, 'impersonate-on:user-info:list configmaps. kube-system']],
  ])('is refused without the right on %s [ADDON-R24]', async (_what, given) => {
    await expect(actAs(jane, only(...given))).rejects.toMatchObject({ reason: 'Forbidden' })
  })

  test('of a service account has a mode of its own [ADDON-R24]', async () => {
    const given = only(
      'impersonate:serviceaccount serviceaccounts.authentication.k8s.io ci builder',
      'impersonate-on:serviceaccount:list configmaps. shop',
    )
    const builder: Headers = [['Impersonate-User', 'system:serviceaccount:ci:builder']]
    expect((await actAs(builder, given)).user.username).toBe('system:serviceaccount:ci:builder')
    await expect(actAs([...builder, ['Impersonate-Group', 'x']], given)).rejects.toMatchObject({
      reason: 'Forbidden',
    })
  })

  test('is not offered for nodes [ADDON-R24]', async () => {
    const given = only('impersonate:user-info users.authentication.k8s.io system:node:a', action)
    await expect(actAs([['Impersonate-User', 'system:node:a']], given)).rejects.toMatchObject({
      reason: 'Forbidden',
    })
  })
})
