import { describe, expect, test } from 'vitest'
import { type Authorizer, type Decision, toKubeStatus } from '../core/index.ts'
import { asks, asksPath, person } from './policy-objects.suite.ts'
import { denial, describeDenial, superusers, union } from './union.ts'

const signal = new AbortController().signal
const noRules = { resourceRules: [], nonResourceRules: [], incomplete: false }
const says = (decision: Decision): Authorizer => ({
  authorize: () => decision,
  rulesFor: () => noRules,
})
const saysLater = (decision: Decision): Authorizer => ({
  authorize: async () => decision,
  rulesFor: async () => noRules,
})
const yes = { allowed: true, reason: 'yes' }
const no = { allowed: false, reason: 'no' }
const never = { allowed: false, denied: true, reason: 'never' }
const question = asks(person('alice'), 'get', 'pods')

describe('a union of authorizers', () => {
  test.each([
    ['the first yes decides', [no, yes, never], yes],
    ['a denial forbids a later yes', [no, never, yes], never],
    ['a yes comes before a later denial', [yes, never], yes],
    ['nobody is a no', [], { allowed: false, reason: '' }],
    ['all reasons are kept', [no, { ...no, reason: '' }, no], { allowed: false, reason: 'no\nno' }],
  ])('%s', async (_name, decisions: Decision[], expected) => {
    expect(union(decisions.map(says)).authorize(question, signal)).toEqual(expected)
    expect(await union(decisions.map(saysLater)).authorize(question, signal)).toEqual(expected)
  })

  test('an authorizer that throws is a failure, not a yes', () => {
    const broken: Authorizer = {
      authorize: () => {
        throw new Error('broken')
      },
      rulesFor: () => noRules,
    }
    expect(() => union([broken, says(yes)]).authorize(question, signal)).toThrow('broken')
  })

  test('rules are joined, and incomplete if one is', async () => {
    const rule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }
    const one: Authorizer = {
      ...says(no),
      rulesFor: () => ({
        ...noRules,
        resourceRules: [rule],
        incomplete: true,
        evaluationError: 'e',
      }),
    }
    expect(await union([one, says(no), one]).rulesFor(person('a'), '', signal)).toEqual({
      resourceRules: [rule, rule],
      nonResourceRules: [],
      incomplete: true,
      evaluationError: 'e, e',
    })
  })
})

test('system:masters may do everything, others not for that reason [GND-R79]', () => {
  const ask = (...groups: string[]) =>
    superusers.authorize(asksPath(person('x', ...groups), 'get', '/x'), signal)
  expect(ask('a', 'system:masters')).toEqual({ allowed: true, reason: '' })
  expect(ask('system:master', 'SYSTEM:MASTERS', ' system:masters')).toMatchObject({
    allowed: false,
  })
})

describe('a denial', () => {
  const alice = person('alice')
  test.each([
    [
      asks(alice, 'get', 'pods', { namespace: 'default' }),
      'User "alice" cannot get resource "pods" in API group "" in the namespace "default"',
    ],
    [
      asks(alice, 'update', 'pods/status', { namespace: 'default', name: 'x' }),
      'User "alice" cannot update resource "pods/status" in API group "" in the namespace "default"',
    ],
    [
      asks(alice, 'list', 'clusterroles.rbac.authorization.k8s.io'),
      'User "alice" cannot list resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope',
    ],
    [asksPath(alice, 'get', '/metrics'), 'User "alice" cannot get path "/metrics"'],
    [asksPath(person('<b>&"'), 'get', '/x'), 'User "&lt;b&gt;&amp;\\"" cannot get path "/x"'],
  ])('of %j is Kubernetes’ sentence', (attributes, sentence) => {
    expect(describeDenial(attributes)).toBe(sentence)
  })

  test('becomes Kubernetes’ Status', () => {
    expect(toKubeStatus(denial(asks(alice, 'get', 'nodes', { name: 'x' }), no))).toMatchObject({
      message:
        'nodes "x" is forbidden: User "alice" cannot get resource "nodes" in API group "" at the cluster scope: no',
      reason: 'Forbidden',
      details: { name: 'x', kind: 'nodes' },
      code: 403,
    })
    expect(toKubeStatus(denial(asksPath(alice, 'get', '/m'), { ...no, reason: '' }))).toMatchObject(
      {
        message: 'forbidden: User "alice" cannot get path "/m"',
        details: {},
        code: 403,
      },
    )
  })
})
