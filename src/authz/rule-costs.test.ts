import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { silentLogger, type WriteAttempt } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { escalationAdmission } from './escalation-admission.ts'
import { binding, person, role } from './policy-objects.suite.ts'
import { RbacAuthorizer } from './rbac-authorizer.ts'
import { type PolicyRule, rbacKinds, readRules } from './rbac-objects.ts'
import { PolicyIndex } from './rbac-policy.ts'
import { compareRules, RoleRules } from './rule-set.ts'

const texts = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)
const rule = (resources: string[], verbs: string[], resourceNames: string[] = []) => ({
  apiGroups: [''],
  resources,
  verbs,
  resourceNames,
})
const rulesOf = (...rules: ReturnType<typeof rule>[]): readonly PolicyRule[] =>
  readRules(role('a', 'x', ...rules))

function lookupsOf(held: readonly RoleRules[], wanted: readonly PolicyRule[]): number {
  let lookups = 0
  for (const step of compareRules(held, wanted)) if ('lookups' in step) lookups = step.lookups
  return lookups
}

describe('what RBAC objects of users cost [SEC-R507]', () => {
  test('names of a resource that is held as a whole are not compared one by one', () => {
    const held = [new RoleRules(rulesOf(rule(['pods', 'secrets'], ['get', 'list'])))]
    const wanted = rulesOf(rule(['pods', 'secrets'], ['get', 'list'], texts('n', 6_000)))
    expect(lookupsOf(held, wanted)).toBeLessThan(20)
  })

  test('a comparison goes step by step, so that its caller can end it', () => {
    const held = texts('r', 1_000).map((name) => new RoleRules(rulesOf(rule([name], ['get']))))
    const steps = compareRules(held, rulesOf(rule(texts('x', 25_000), ['get'])))
    const taken: unknown[] = []
    for (const step of steps) if (taken.push(step) === 4) break
    expect(taken).toEqual([
      { lookups: 1_001 },
      { missing: expect.objectContaining({ resources: ['x0'] }) },
      { lookups: 1_001 },
      { lookups: 2_002 },
    ])
  })

  test('a role is prepared once, however many bindings, users and changes there are', () => {
    const policy = new PolicyIndex()
    policy.put(role('team', 'big', rule(texts('r', 100), texts('v', 100))))
    const bindings = texts('b', 50).map((name) =>
      binding(`team/${name}`, 'Role big', 'Group everyone', ...texts('User u', 50)),
    )
    for (const each of bindings) policy.put(each)
    const grantedTo = (name: string) =>
      policy.namespaceRulesOf(person(name, 'everyone'), 'team').granted.map((each) => each.role)
    const before = grantedTo('u1')
    for (const each of bindings.slice(7, 8)) policy.put(each)
    expect([before.length, grantedTo('u1')[0] === before[0]]).toEqual([1, true])
    expect(grantedTo('u2')[0] === before[0]).toBe(true)
  })
})

describe('an escalation check with very many rules [SEC-R507]', () => {
  const signal = new AbortController().signal
  async function checked(held: number, wanted: ReturnType<typeof rule>) {
    const view = new FakeClusterView({
      objects: texts('r', held).flatMap((name) => [
        role('team', name, rule([name], ['get'])),
        binding(`team/${name}`, `Role ${name}`, 'User eve'),
      ]),
    })
    const rbac = new RbacAuthorizer(view, silentLogger)
    await rbac.start()
    const attempt: WriteAttempt = {
      user: person('eve'),
      operation: 'create',
      kind: rbacKinds.role,
      subresource: '',
      namespace: 'team',
      name: 'new',
      object: role('team', 'new', wanted),
      dryRun: false,
    }
    const outcome = Promise.resolve(
      escalationAdmission({ authorizer: rbac, rbac, view })(attempt, signal),
    ).then(
      () => 'admitted',
      (error: unknown) => String(error),
    )
    let turns = 0
    const isOver = outcome.then(() => true)
    while (!(await Promise.race([isOver, nextTurn(false)]))) turns++
    await rbac.stop(AbortSignal.timeout(1_000))
    return { outcome: await outcome, turns }
  }

  test('lets others have their turn', async () => {
    const { outcome, turns } = await checked(400, rule(texts('r', 400).toReversed(), ['get']))
    expect([outcome, turns > 10]).toEqual(['admitted', true])
  })

  test('is refused when the rules are too many to be compared', async () => {
    const wanted = rule(Array(20).fill(texts('r', 400)).flat(), ['get'])
    expect((await checked(400, wanted)).outcome).toMatch('too many to be compared')
  })

  test('that are not held ends after the first ones', async () => {
    const { outcome } = await checked(1, rule(texts('x', 150), texts('v', 150)))
    expect(outcome).toMatch(/and more$/)
  })
})
