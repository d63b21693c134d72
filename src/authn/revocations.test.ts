import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  ApiError,
  type Authentication,
  type Clock,
  type KubeObject,
  type ObjectList,
  silentLogger,
  wellKnownKinds,
} from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { defaultStaleness } from './revocation-freshness.ts'
import {
  addRevocation,
  formatRevocation,
  listRevocations,
  parseRevocations,
  type Revocation,
  removeRevocation,
} from './revocation-list.ts'
import { Revocations, type RevocationsOptions } from './revocations.ts'

const signal = new AbortController().signal

const listOf = (data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'kube-system', name: 'sallyport-revoked' },
  data,
})

describe('the list', () => {
  test('has an entry per line, with notes and comments', () => {
    const list = listOf({
      users: [
        '# left the company',
        'jane # 2026-01-02T03:04:05Z left the company',
        'Jane Doe',
        'https://issuer#max',
        '  bob\t#\tnote ',
        '"with # hash" # quoted',
        '"back\\\\slash \\"q\\""',
        '',
      ].join('\n'),
      'certificate-serials': '0a:1B\n0x00ff # lost laptop\n0',
      'token-ids': 'JTI=1234\r\n',
    })
    expect(parseRevocations(list)).toEqual({
      problems: [],
      revocations: [
        { type: 'user', value: 'jane', note: '2026-01-02T03:04:05Z left the company' },
        { type: 'user', value: 'Jane Doe' },
        { type: 'user', value: 'https://issuer#max' },
        { type: 'user', value: 'bob', note: 'note' },
        { type: 'user', value: 'with # hash', note: 'quoted' },
        { type: 'user', value: 'back\\slash "q"' },
        { type: 'certificate', value: 'A1B' },
        { type: 'certificate', value: 'FF', note: 'lost laptop' },
        { type: 'certificate', value: '0' },
        { type: 'token', value: 'JTI=1234' },
      ],
    })
  })

  test('that is absent or empty revokes nobody', () => {
    expect(parseRevocations(undefined)).toEqual({ revocations: [], problems: [] })
    expect(parseRevocations(listOf({}))).toEqual({ revocations: [], problems: [] })
  })

  test('with bad lines keeps the good ones and names the bad [GND-R78]', () => {
    const list = listOf({
      users: '"no end\njane\n""',
      'certificate-serials': 'xyz\n0A',
      user: 'typo',
    })
    expect(parseRevocations(list)).toEqual({
      revocations: [
        { type: 'user', value: 'jane' },
        { type: 'certificate', value: 'A' },
      ],
      problems: [
        'data key "user" is unknown',
        'users, line 1: the quoted value cannot be read',
        'users, line 3: the quoted value cannot be read',
        'certificate-serials, line 1: the serial number is not hexadecimal',
      ],
    })
  })

  test('of one endless line is read in no time', () => {
    const endless = `a${' '.repeat(1_000_000)}b`
    expect(parseRevocations(listOf({ users: endless })).revocations).toEqual([
      { type: 'user', value: endless },
    ])
  })

  test.each([
    'jane',
    'Jane Doe',
    ' spaces around ',
    '#hash',
    'a # b',
    'a#b',
    '"quoted"',
    'line\nbreak',
    'separator\u2028',
    '日本',
  ])('gives back the name %j as it was written', (value) => {
    const entry: Revocation = { type: 'user', value, note: 'why # not\nindeed' }
    const line = formatRevocation(entry)
    expect(line).not.toContain('\n')
    expect(parseRevocations(listOf({ users: line })).revocations).toEqual([
      { type: 'user', value, note: 'why # not indeed' },
    ])
  })
})

describe('changing the list', () => {
  const users = async (view: FakeClusterView) =>
    (await listRevocations(view, signal)).revocations.map(({ type, value }) => `${type} ${value}`)

  test('adds and removes entries and keeps the rest [GND-R77]', async () => {
    const view = new FakeClusterView()
    expect(await addRevocation(view, { type: 'user', value: 'jane', note: 'n' }, signal)).toBe(true)
    expect(await addRevocation(view, { type: 'user', value: 'jane' }, signal)).toBe(false)
    expect(await addRevocation(view, { type: 'certificate', value: '0a:ff' }, signal)).toBe(true)
    expect(await addRevocation(view, { type: 'certificate', value: 'AFF' }, signal)).toBe(false)
    expect(await users(view)).toEqual(['user jane', 'certificate AFF'])
    expect(await removeRevocation(view, { type: 'user', value: 'jane' }, signal)).toBe(true)
    expect(await removeRevocation(view, { type: 'user', value: 'jane' }, signal)).toBe(false)
    expect(await users(view)).toEqual(['certificate AFF'])
  })

  test('leaves comments and lines it cannot read', async () => {
    const view = new FakeClusterView({ objects: [listOf({ users: '# ours\n"odd\nbob\n' })] })
    await addRevocation(view, { type: 'user', value: 'jane' }, signal)
    const stored = await view.get(
      { group: '', version: 'v1', kind: 'ConfigMap', resource: 'configmaps', namespaced: true },
      { namespace: 'kube-system', name: 'sallyport-revoked' },
      signal,
    )
    expect(stored?.['data']).toEqual({ users: '# ours\n"odd\nbob\njane\n' })
  })

  test('by many at once loses none', async () => {
    const view = new FakeClusterView()
    const names = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(names.map((value) => addRevocation(view, { type: 'user', value }, signal)))
    expect((await users(view)).toSorted()).toEqual(names.map((name) => `user ${name}`))
  })

  test('refuses what is no serial number', async () => {
    const wrong: Revocation = { type: 'certificate', value: 'jane' }
    await expect(addRevocation(new FakeClusterView(), wrong, signal)).rejects.toThrow('hexadecimal')
  })

  test('passes on what is not a race', async () => {
    const view = new FakeClusterView()
    view.fail(new ApiError('Forbidden', 'no'))
    await expect(addRevocation(view, { type: 'user', value: 'x' }, signal)).rejects.toThrow('no')
  })
})

const jane: Authentication = { user: { username: 'jane', groups: [] }, method: 'test' }
const byCertificate: Authentication = {
  ...jane,
  credential: { type: 'certificate', serial: '0A1B' },
}
const byToken: Authentication = { ...jane, credential: { type: 'token', id: 'JTI=1' } }
const max: Authentication = { user: { username: 'max', groups: [] }, method: 'test' }

const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }
const started: Revocations[] = []

async function revocationsOn(
  view: FakeClusterView,
  options: Partial<RevocationsOptions> = {},
): Promise<Revocations> {
  const revocations = new Revocations({
    view,
    clock,
    log: silentLogger,
    staleness: 'never',
    ...options,
  })
  started.push(revocations)
  await revocations.start()
  return revocations
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
})
afterEach(async () => {
  for (const each of started.splice(0)) await each.stop(AbortSignal.abort())
  vi.useRealTimers()
})

/** Lets everything happen that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)

describe('whoever is on the list', () => {
  test.each([
    ['by name', { users: 'jane' }, jane],
    ['by name, whatever the credential', { users: 'jane' }, byToken],
    ['by serial', { 'certificate-serials': 'a1b' }, byCertificate],
    ['by token', { 'token-ids': 'JTI=1' }, byToken],
  ])('%s is refused, others are not [GND-R78]', async (_how, data, authentication) => {
    const revocations = await revocationsOn(new FakeClusterView({ objects: [listOf(data)] }))
    expect(() => revocations.check(authentication)).toThrow(
      expect.objectContaining({ reason: 'Unauthorized' }),
    )
    expect(() => revocations.check(max)).not.toThrow()
  })

  test('is refused from the next request on, and let in when taken off [GND-R78]', async () => {
    const view = new FakeClusterView()
    const revocations = await revocationsOn(view)
    await settle()
    expect(revocations.isRevoked(jane)).toBe(false)
    await addRevocation(view, { type: 'user', value: 'jane' }, signal)
    await settle()
    expect(revocations.isRevoked(jane)).toBe(true)
    await removeRevocation(view, { type: 'user', value: 'jane' }, signal)
    await settle()
    expect(revocations.isRevoked(jane)).toBe(false)
  })

  test('has his open streams cut, once, and nobody else has [GND-R78]', async () => {
    const view = new FakeClusterView()
    const revocations = await revocationsOn(view)
    await settle()
    const cut: string[] = []
    revocations.onRevoked(byCertificate, () => {
      throw new Error('cannot be cut')
    })
    revocations.onRevoked(byCertificate, () => cut.push('by certificate'))
    revocations.onRevoked(byToken, () => cut.push('by token'))
    revocations.onRevoked(max, () => cut.push('max'))
    revocations.onRevoked(byToken, () => cut.push('ended before'))()
    await addRevocation(view, { type: 'certificate', value: '0a1b' }, signal)
    await settle()
    expect(cut).toEqual(['by certificate'])
    await addRevocation(view, { type: 'user', value: 'jane' }, signal)
    await settle()
    expect(cut).toEqual(['by certificate', 'by token'])
    revocations.onRevoked(jane, () => cut.push('too late'))
    expect(cut).toEqual(['by certificate', 'by token', 'too late'])
  })
})

test('every further revocation is reported, and nothing that is taken back [SEC-R2452]', async () => {
  const view = new FakeClusterView()
  const revocations = await revocationsOn(view)
  const report = vi.fn()
  revocations.onMoreRevoked(report)
  await addRevocation(view, { type: 'user', value: 'jane' }, signal)
  await settle()
  await addRevocation(view, { type: 'certificate', value: '0a1b' }, signal)
  await settle()
  expect(report).toHaveBeenCalledTimes(2)
  await removeRevocation(view, { type: 'user', value: 'jane' }, signal)
  await settle()
  expect(report).toHaveBeenCalledTimes(2)
})

describe('a list that may be stale', () => {
  const refused = { reason: 'ServiceUnavailable' }
  const refusal = (revocations: Revocations) => {
    try {
      revocations.check(max)
      return undefined
    } catch (error) {
      return error
    }
  }

  test('rejects all requests before it was read [GND-R78]', () => {
    const view = new FakeClusterView()
    const revocations = new Revocations({ view, clock, log: silentLogger, staleness: 'never' })
    expect(refusal(revocations)).toMatchObject(refused)
  })

  test('rejects all requests and closes all streams when it is not confirmed for too long [GND-R78]', async () => {
    const view = new FakeClusterView()
    const revocations = await revocationsOn(view, { staleness: defaultStaleness })
    const cut = vi.fn()
    const report = vi.fn()
    revocations.onRevoked(max, cut)
    revocations.onMoreRevoked(report)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(refusal(revocations)).toBeUndefined()
    view.fail(new ApiError('ServiceUnavailable', 'away'))
    await vi.advanceTimersByTimeAsync(1_400)
    expect(refusal(revocations)).toBeUndefined()
    expect(cut).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1_200)
    expect(refusal(revocations)).toMatchObject(refused)
    expect(cut).toHaveBeenCalledOnce()
    expect(report).toHaveBeenCalledOnce()
    view.fail(undefined)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(refusal(revocations)).toBeUndefined()
  })

  test('is stale too when the cluster does not respond [GND-R78]', async () => {
    const view = new FakeClusterView()
    const revocations = await revocationsOn(view, { staleness: defaultStaleness })
    const cut = vi.fn()
    revocations.onRevoked(max, cut)
    view.list = () => new Promise(() => {})
    await vi.advanceTimersByTimeAsync(2_100)
    expect(refusal(revocations)).toMatchObject(refused)
    expect(cut).toHaveBeenCalledOnce()
  })

  test('shows a new entry within two seconds although the watch is silent [GND-R78]', async () => {
    const view = new FakeClusterView()
    view.watch = () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) })
    const revocations = await revocationsOn(view, { staleness: defaultStaleness })
    await addRevocation(view, { type: 'user', value: 'max' }, signal)
    await vi.advanceTimersByTimeAsync(2_000)
    await nextTurn() // of the event loop, while the clock stands still
    expect(refusal(revocations)).toMatchObject({ reason: 'Unauthorized' })
  })

  test('is not undone by a response that was requested before the change [GND-R78]', async () => {
    const view = new FakeClusterView()
    const revocations = await revocationsOn(view, { staleness: defaultStaleness })
    await settle()
    const old = await view.list(wellKnownKinds.configMap, {}, signal)
    let respond = (_list: ObjectList) => {}
    view.list = () =>
      new Promise((resolve) => {
        respond = resolve
      })
    await vi.advanceTimersByTimeAsync(600)
    view.put(listOf({ users: 'max' }))
    await settle()
    expect(refusal(revocations)).toMatchObject({ reason: 'Unauthorized' })
    respond(old)
    await settle()
    expect(refusal(revocations)).toMatchObject({ reason: 'Unauthorized' })
  })

  test('of a view in this process is never stale', async () => {
    const view = new FakeClusterView()
    const revocations = await revocationsOn(view)
    view.fail(new ApiError('ServiceUnavailable', 'away'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(refusal(revocations)).toBeUndefined()
  })
})

test('bad entries are logged once, not at every reading', async () => {
  const warnings: unknown[] = []
  const log = {
    ...silentLogger,
    warn: (fields: object, message: string) => warnings.push({ ...fields, message }),
    child: () => log,
  }
  const view = new FakeClusterView({ objects: [listOf({ 'certificate-serials': 'nonsense' })] })
  await revocationsOn(view, { log, staleness: defaultStaleness })
  await vi.advanceTimersByTimeAsync(5_000)
  expect(warnings).toEqual([
    {
      problem: 'certificate-serials, line 1: the serial number is not hexadecimal',
      message: 'revocation list has a bad entry',
    },
  ])
})
