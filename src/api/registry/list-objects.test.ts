import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { openMemoryStore } from '../../storage/index.ts'
import { configMap, namespace } from '../kinds/index.ts'
import { createObject } from './create.ts'
import { deleteObject } from './delete.ts'
import { bytesPerTurn, type ListQuery, listObjects } from './list.ts'
import { LocalClusterView, serverUser } from './local-cluster-view.ts'
import { keyOf } from './object-bytes.ts'
import { noLimits, QuotaStore } from './quota.ts'
import { AdmissionChain, type RegistryContext } from './registry.ts'

const signal = AbortSignal.timeout(20_000)
const writing = { user: serverUser, dryRun: false, signal }
let context: RegistryContext
/** The revision at which only `a` and `b` were there. */
let early: number

const create = (name: string, data: Readonly<Record<string, string>> = {}) =>
  createObject(
    context,
    configMap,
    { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, namespace: 'default' }, data },
    writing,
  )

async function namesOf(query: ListQuery): Promise<string[]> {
  const { runs } = await listObjects(context, configMap, { namespace: 'default', ...query }, signal)
  return runs.flat().map(({ key }) => keyOf(configMap.kind, key).name)
}

async function open(history?: { readonly maxEvents: number; readonly maxBytes: number }) {
  const store = openMemoryStore(history ? { history } : {})
  context = {
    store,
    quota: new QuotaStore(store, noLimits, silentLogger),
    clock: systemClock,
    admissions: new AdmissionChain([]),
    hooks: [],
    newUid: randomUUID,
  }
  const home = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default' } }
  await createObject(context, namespace, home, writing)
  await create('a')
  await create('b')
  early = context.store.revision
  await create('c')
  await deleteObject(context, configMap, { ...writing, key: { namespace: 'default', name: 'a' } })
}

beforeEach(() => open())

describe('which version a list shows [GND-R55]', () => {
  test.each([
    ['without a version: the newest', () => ({}), ['b', 'c']],
    ['version 0: any, so the newest', () => ({ resourceVersion: '0' }), ['b', 'c']],
    [
      'not older than an old one: the newest',
      () => ({ resourceVersion: String(early), resourceVersionMatch: 'NotOlderThan' }),
      ['b', 'c'],
    ],
    [
      'exactly an old one: that one',
      () => ({ resourceVersion: String(early), resourceVersionMatch: 'Exact' }),
      ['a', 'b'],
    ],
    [
      'an old one with a limit and no rule: that one',
      () => ({ resourceVersion: String(early), limit: 10 }),
      ['a', 'b'],
    ],
    [
      'an old one without a rule: at least as new',
      () => ({ resourceVersion: String(early) }),
      ['b', 'c'],
    ],
  ])('%s', async (_title, query, names) => {
    expect(await namesOf(query())).toEqual(names)
  })
})

describe('what a list refuses [GND-R55]', () => {
  test.each([
    ['a version that is no number', { resourceVersion: 'newest' }, 'BadRequest'],
    ['a rule without a version', { resourceVersionMatch: 'Exact' }, 'Invalid'],
    ['an unknown rule', { resourceVersion: '1', resourceVersionMatch: 'About' }, 'Invalid'],
    ['exactly version 0', { resourceVersion: '0', resourceVersionMatch: 'Exact' }, 'Invalid'],
    ['a made-up continue', { continue: 'made-up' }, 'BadRequest'],
  ])('%s', async (_title, query, reason) => {
    await expect(namesOf(query)).rejects.toMatchObject({ reason })
  })

  test('a version that has not happened yet, after a moment of waiting', async () => {
    const future = String(context.store.revision + 1_000)
    await expect(namesOf({ resourceVersion: future })).rejects.toMatchObject({
      reason: 'Timeout',
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }] },
    })
  })
})

test('pages go on after the last name, and say how many follow [GND-R55]', async () => {
  const query = { namespace: 'default', limit: 1 }
  const first = await listObjects(context, configMap, query, signal)
  expect(first.remaining).toBe(1)
  const second = await listObjects(
    context,
    configMap,
    { ...query, continue: first.continue ?? '' },
    signal,
  )
  expect(second.runs.flat().map(({ key }) => keyOf(configMap.kind, key).name)).toEqual(['c'])
  expect(second.continue).toBeUndefined()
})

test('a continue that is too old is Expired and says how to go on all the same [GND-R55, GND-R23]', async () => {
  await open({ maxEvents: 3, maxBytes: 1_000_000 })
  const query = { namespace: 'default', limit: 1 }
  const first = await listObjects(context, configMap, query, signal)
  for (const name of ['d', 'e', 'f', 'g']) await create(name)
  const refused = listObjects(
    context,
    configMap,
    { ...query, continue: first.continue ?? '' },
    signal,
  )
  const error: unknown = await refused.catch((caught: unknown) => caught)
  expect(error).toMatchObject({ reason: 'Expired', continueToken: expect.any(String) })
  const { continueToken } = error as { continueToken: string }
  expect(await namesOf({ continue: continueToken })).toEqual(['c', 'd', 'e', 'f', 'g'])
})

test('[SEC-R2451] a list that the server decodes yields by bytes, not by objects', async () => {
  const data = { large: 'x'.repeat(bytesPerTurn - 100) }
  for (const name of ['d', 'e', 'f', 'g']) await create(name, data)
  let turns = 0
  let turn = setImmediate(function count() {
    turns += 1
    turn = setImmediate(count)
  })
  const view = new LocalClusterView(context, async (_kind, review) => review)
  const { items } = await view.list(configMap.kind, { namespace: 'default' }, signal)
  clearImmediate(turn)
  expect(items).toHaveLength(6)
  expect(turns).toBeGreaterThanOrEqual(4)
})
