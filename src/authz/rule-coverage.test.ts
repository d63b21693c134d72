import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { person } from './policy-objects.suite.ts'
import type { PolicyRule } from './rbac-objects.ts'
import { breakDown, compactRules, describeRule, missingRules, RoleRules } from './rule-set.ts'

const rule = (parts: Partial<PolicyRule>): PolicyRule => ({
  verbs: [],
  apiGroups: [],
  resources: [],
  resourceNames: [],
  nonResourceURLs: [],
  ...parts,
})
const on = (resources: string, verbs: string, apiGroups = '', names = ''): PolicyRule =>
  rule({
    resources: resources.split(' '),
    verbs: verbs.split(' '),
    apiGroups: apiGroups.split(' '),
    resourceNames: names === '' ? [] : names.split(' '),
  })
const path = (urls: string, verbs: string) =>
  rule({ nonResourceURLs: urls.split(' '), verbs: verbs.split(' ') })

describe('coverage', () => {
  test.each([
    ['the same rule', [on('pods', 'get')], on('pods', 'get'), true],
    ['more verbs', [on('pods', 'get')], on('pods', 'get list'), false],
    [
      'verbs spread over rules',
      [on('pods', 'get'), on('pods', 'list')],
      on('pods', 'get list'),
      true,
    ],
    ['any verb', [on('pods', '*')], on('pods', 'get frobnicate'), true],
    ['a wish for any verb', [on('pods', 'get list watch')], on('pods', '*'), false],
    ['any resource', [on('*', 'get')], on('pods pods/log', 'get'), true],
    ['any subresource of that name', [on('*/scale', 'get')], on('pods/scale', 'get'), true],
    ['another subresource', [on('*/scale', 'get')], on('pods/status', 'get'), false],
    ['a subresource by its resource', [on('pods', 'get')], on('pods/log', 'get'), false],
    ['another group', [on('pods', 'get', 'apps')], on('pods', 'get'), false],
    ['any group', [on('pods', 'get', '*')], on('pods', 'get', 'x.example'), true],
    ['a name out of all', [on('pods', 'get')], on('pods', 'get', '', 'a'), true],
    ['all out of a name', [on('pods', 'get', '', 'a')], on('pods', 'get'), false],
    ['another name', [on('pods', 'get', '', 'a')], on('pods', 'get', '', 'b'), false],
    ['a path', [path('/x', 'get')], path('/x', 'get'), true],
    ['a path below', [path('/x/*', 'get')], path('/x/y /x/y/*', 'get'), true],
    ['a path above', [path('/x/y', 'get')], path('/x/*', 'get'), false],
    ['all paths', [path('*', '*')], path('/a /b/*', 'get'), true],
    ['resources by paths', [path('*', '*')], on('pods', 'get'), false],
    ['paths by resources', [on('*', '*', '*')], path('/x', 'get'), false],
    ['nothing', [], rule({}), true],
  ])('of %s [GND-R80]', (_what, held, wanted, covered) => {
    expect(missingRules(held, [wanted]).length === 0).toBe(covered)
  })

  const some = (...values: string[]) => fc.subarray(values, { minLength: 1 })
  const anyRule = fc.oneof(
    fc.record({
      verbs: some('get', 'list', '*'),
      apiGroups: some('', 'apps', '*'),
      resources: some('pods', 'pods/log', 'nodes', '*/log', '*'),
      resourceNames: fc.subarray(['a', 'b']),
      nonResourceURLs: fc.constant([]),
    }),
    fc.record({
      verbs: some('get', 'list', '*'),
      apiGroups: fc.constant([]),
      resources: fc.constant([]),
      resourceNames: fc.constant([]),
      nonResourceURLs: some('/x', '/x/*', '/x/y', '*'),
    }),
  )
  const pick = (...values: string[]) => fc.constantFrom(...values)
  const anyQuestion = fc.record({
    verb: pick('get', 'list', 'other'),
    group: pick('', 'apps', 'other'),
    resource: pick('pods', 'nodes', 'others'),
    subresource: pick('', 'log', 'other'),
    name: pick('', 'a', 'b', 'other'),
    path: pick('/x', '/x/y', '/x/z', '/other'),
  })
  const ruleSet = (rules: readonly PolicyRule[]) => new RoleRules(rules)

  test('means that nothing allowed by the one is refused by the other [GND-R80]', () => {
    fc.assert(
      fc.property(
        fc.array(anyRule, { maxLength: 4 }),
        fc.array(anyRule, { maxLength: 3 }),
        fc.array(anyQuestion, { minLength: 20, maxLength: 20 }),
        (held, wanted, questions) => {
          fc.pre(missingRules(held, wanted).length === 0)
          for (const { verb, path: url, ...resource } of questions) {
            const user = person('u')
            const asked = [
              { user, verb, resource: { ...resource, version: 'v1', namespace: '' } },
              { user, verb, path: url },
            ]
            for (const question of asked) {
              if (!ruleSet(wanted).allows(question)) continue
              expect(ruleSet(held).allows(question)).toBe(true)
            }
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})

test('breaking down and compacting say the same', () => {
  const rules = [...breakDown(on('pods secrets', 'get list', '', 'a b'))]
  expect(rules).toHaveLength(8)
  expect(compactRules(rules).map(describeRule)).toEqual([
    '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}',
    '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get" "list"]}',
    '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}',
    '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get" "list"]}',
  ])
})

test('a rule with a name of nothing gives no right on all names', () => {
  const held = [rule({ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: [''] })]
  expect(missingRules(held, [on('pods', 'get')])).toHaveLength(1)
})

test('many rules are compared with many in no time', () => {
  const names = Array.from({ length: 20_000 }, (_, index) => `n${index}`)
  const rules = names.map((name) => on('pods', 'get', '', name))
  expect(missingRules(rules, rules)).toEqual([])
})
