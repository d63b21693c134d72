import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type KubeObject, type Logger, silentLogger, wellKnownKinds } from '../../core/index.ts'
import { signingKey } from '../../jose/index.ts'
import { privateKeyFor } from '../../jose/jose.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { defaultRotationTimes as times } from './key-ring.ts'
import { renderRing, signingKeysKey } from './key-secret.ts'
import { beginRotation, readSigningKeys, replaceKeys } from './rotation.ts'
import { StoredKeys, type StoredKeysParts } from './stored-keys.ts'

const clock = { now: () => Date.now(), monotonic: () => Date.now() }
const firstKey = privateKeyFor('ES256')
const hour = 3_600_000
const day = 24 * hour

let ending: AbortController
let view: FakeClusterView
beforeEach(() => {
  vi.useFakeTimers({
    now: 1_800_000_000_000,
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'],
  })
  ending = new AbortController()
  view = new FakeClusterView()
})
afterEach(() => {
  ending.abort()
  vi.useRealTimers()
})

const open = (more: Partial<StoredKeysParts> = {}): Promise<StoredKeys> =>
  StoredKeys.open({
    view,
    clock,
    log: silentLogger,
    signal: ending.signal,
    firstKey: async () => firstKey,
    ...more,
  })
const keeper = () => ({ view, clock })
const stages = async (): Promise<string> => {
  const keys = await readSigningKeys(keeper(), ending.signal)
  return keys.map(({ stage }) => stage).join(', ')
}
const kidsOf = (keys: StoredKeys): string[] => keys.current.published.keys.map(({ kid }) => kid)
const secret = (): Promise<KubeObject | undefined> =>
  view.get(wellKnownKinds.secret, signingKeysKey, ending.signal)
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

test('the first server makes the first key, all others find it', async () => {
  const [one, two] = await Promise.all([
    open(),
    open({ firstKey: async () => privateKeyFor('ES256') }),
  ])
  expect(kidsOf(two)).toEqual(kidsOf(one))
  expect(two.current.signer.kid).toBe(one.current.signer.kid)
})

describe('a rotation [ISS-G2, ISS-G4]', () => {
  test('is seen by every server, waits, switches, and drops the old key with its last token', async () => {
    const servers = await Promise.all([open(), open()])
    const old = servers[0].current.signer.kid
    await beginRotation(keeper(), ending.signal)
    await pass(0)
    for (const server of servers) {
      expect(kidsOf(server)).toHaveLength(2)
      expect(server.current.signer.kid).toBe(old)
    }
    expect(await stages()).toBe('signing, next')
    await pass(times.publishMs - 1)
    expect(servers.map(({ current }) => current.signer.kid)).toEqual([old, old])
    const lastToken = Date.now() + 2 * day
    await servers[1].noteToken(old, lastToken)
    await pass(1)
    const [next] = servers.map(({ current }) => current.signer.kid)
    expect(next).not.toBe(old)
    expect(await stages()).toBe('retired, signing')
    await pass(lastToken - Date.now())
    expect(servers.map(kidsOf)).toEqual([
      [old, next],
      [old, next],
    ])
    await pass(3 * day)
    expect(servers.map(kidsOf)).toEqual([[next], [next]])
  })

  test('survives a restart in the middle', async () => {
    const before = await open()
    await beginRotation(keeper(), ending.signal)
    const [old = '', next = ''] = (await readSigningKeys(keeper(), ending.signal)).map(
      ({ kid }) => kid,
    )
    await before.noteToken(old, Date.now() + day)
    ending.abort()
    ending = new AbortController()
    await pass(times.publishMs)
    const after = await open()
    expect([after.current.signer.kid, kidsOf(after)]).toEqual([next, [old, next]])
  })

  test.each([
    ['as long as it is told to, for copies that take longer', 7 * day, 7 * day],
    ['no shorter than caches need', hour, times.publishMs],
  ])('shows the next key %s', async (_name, asked, expected) => {
    await open()
    const [, next] = await beginRotation(keeper(), ending.signal, asked)
    expect((next?.signsFrom ?? 0) - Date.now()).toBe(expected)
  })

  test('is not begun twice', async () => {
    await open()
    await beginRotation(keeper(), ending.signal)
    await expect(beginRotation(keeper(), ending.signal)).rejects.toMatchObject({
      code: 'ROTATION_UNDER_WAY',
    })
  })
})

describe('by a schedule [ISS-G3]', () => {
  test('a key gets one successor, however many servers there are', async () => {
    const servers = await Promise.all([
      open({ rotationPeriodMs: 2 * day }),
      open({ rotationPeriodMs: 2 * day }),
    ])
    await pass(2 * day - 1)
    expect(await stages()).toBe('signing')
    await pass(1)
    // RSA keys take their time on a busy machine.
    const made = async () => expect(await stages()).toBe('signing, next')
    await vi.waitFor(made, { timeout: 15_000 })
    await pass(times.publishMs)
    expect(servers[0].current.signer.kid).toBe(servers[1].current.signer.kid)
    expect(await stages()).toBe('retired, signing')
  })

  test('without one the key stays', async () => {
    await open()
    await pass(10 * day)
    expect(await stages()).toBe('signing')
  })
})

test('in an emergency only the new key counts, on every server at once [ISS-G5]', async () => {
  const servers = await Promise.all([open(), open()])
  const heard = vi.fn()
  servers[1].onChange(heard)
  const [report] = await replaceKeys(keeper(), ending.signal)
  await pass(0)
  expect(servers.map(kidsOf)).toEqual([[report?.kid], [report?.kid]])
  expect(servers[1].current.signer.kid).toBe(report?.kid)
  expect(heard).toHaveBeenCalled()
})

test('with key files nothing is rotated, and the reason is said [ISS-G6]', async () => {
  view.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'sallyport-issuer', namespace: 'kube-system' },
    data: { issuer: 'https://issuer.example', keys: 'files' },
  })
  await open()
  for (const attempt of [beginRotation, replaceKeys, readSigningKeys])
    await expect(attempt(keeper(), ending.signal)).rejects.toMatchObject({
      code: 'KEYS_IN_FILES',
      message: expect.stringContaining('--service-account-signing-key-file'),
    })
})

describe('with a hundred keys, as many as relying parties read [ISS-G10]', () => {
  const keys = Array.from({ length: 100 }, () => signingKey(privateKeyFor('ES256')))
  const putRing = (lastTokenMs: number) => {
    const now = Date.now()
    const ring = keys.map(({ kid }, index) => ({
      kid,
      publishedAt: now - 2 * day,
      signsFrom: now - 2 * day + index,
      tokensUntil: now + (index === 0 ? lastTokenMs : 365 * day),
    }))
    view.put(renderRing({ ring, keys: new Map(keys.map((key) => [key.kid, key])) }))
  }

  test('rotate is refused, and says what keeps them', async () => {
    putRing(365 * day)
    await open()
    await expect(beginRotation(keeper(), ending.signal)).rejects.toMatchObject({
      code: 'TOO_MANY_KEYS',
      message: expect.stringContaining('100 keys are published'),
    })
    expect(await replaceKeys(keeper(), ending.signal)).toHaveLength(1)
  })

  test('the schedule waits until one is dropped, and says so', async () => {
    const warnings: string[] = []
    const log: Logger = { ...silentLogger, warn: (_fields, text) => void warnings.push(text) }
    putRing(3 * hour)
    const server = await open({ rotationPeriodMs: hour, log })
    await pass(2 * hour)
    expect(kidsOf(server)).toEqual(keys.map(({ kid }) => kid))
    expect(warnings).toEqual([expect.stringContaining('no further key is made until')])
    await pass(hour + times.marginMs)
    const followed = () =>
      expect(kidsOf(server).slice(0, 99)).toEqual(keys.slice(1).map(({ kid }) => kid))
    await vi.waitFor(followed, { timeout: 15_000 })
    await vi.waitFor(() => expect(kidsOf(server)).toHaveLength(100), { timeout: 15_000 })
  })
})

/** What is written is there at once; the answer comes when it may. */
class SlowAnswers extends FakeClusterView {
  answer = Promise.resolve()

  override async write(...args: Parameters<FakeClusterView['write']>): Promise<KubeObject> {
    const { answer } = this
    const written = await super.write(...args)
    await answer
    return written
  }
}

test('an answer that comes late does not undo what was done since [ISS-G5]', async () => {
  const slow = new SlowAnswers()
  const keys = await open({ view: slow })
  const { kid } = keys.current.signer
  let arrive = () => {}
  slow.answer = new Promise((resolve) => {
    arrive = resolve
  })
  const noting = keys.noteToken(kid, Date.now() + day)
  await pass(0)
  slow.answer = Promise.resolve()
  const [report] = await replaceKeys({ view: slow, clock }, ending.signal)
  await pass(0)
  arrive()
  await noting
  expect(kidsOf(keys)).toEqual([report?.kid])
})

describe('a server that has lost sight of the keys [ISS-G4]', () => {
  test('stops to sign and to publish before others could go ahead, and goes on when it sees them again', async () => {
    const keys = await open()
    view.fail(new Error('no network'))
    await pass(times.sightMs)
    expect(() => keys.requireSight()).not.toThrow()
    await pass(1)
    expect(() => keys.requireSight()).toThrow('out of sight for 10 minutes')
    view.fail(undefined)
    await pass(times.sightMs / 5)
    expect(() => keys.requireSight()).not.toThrow()
  })

  test('takes no longer than a part of the time that a new key is shown before it signs', () => {
    expect(times.sightMs + hour + 20 * 60_000).toBeLessThanOrEqual(times.publishMs)
  })
})

describe('the Secret with the keys', () => {
  const writtenAgain = (good: KubeObject) =>
    vi.waitFor(async () => expect((await secret())?.['data']).toEqual(good['data']), {
      timeout: 15_000,
    })

  test('is written again when somebody deletes it', async () => {
    const keys = await open()
    const [kid] = kidsOf(keys)
    await view.write('delete', (await secret())!, {}, ending.signal)
    await vi.waitFor(async () => expect(await secret()).toBeDefined())
    expect(kidsOf(await open({ firstKey: async () => privateKeyFor('ES256') }))).toEqual([kid])
  })

  test.each<[string, (good: KubeObject) => KubeObject]>([
    ['rubbish', (good) => ({ ...good, data: { 'keys.json': 'eA==' } })],
    ['nothing', (good) => ({ ...good, data: {} })],
    [
      'no key',
      (good) => ({
        ...good,
        data: { 'keys.json': Buffer.from('{"version":1,"keys":[]}').toString('base64') },
      }),
    ],
  ])(
    'with %s is written again by a server that runs, and stops one that starts',
    async (_name, spoil) => {
      const errors: unknown[] = []
      const log: Logger = { ...silentLogger, error: (fields) => void errors.push(fields) }
      const keys = await open({ log })
      const before = kidsOf(keys)
      const good = (await secret())!
      view.put(spoil(good))
      await writtenAgain(good)
      await pass(0)
      expect(kidsOf(keys)).toEqual(before)
      expect(errors).toHaveLength(1)
      ending.abort()
      ending = new AbortController()
      view.put(spoil(good))
      await expect(open()).rejects.toMatchObject({ code: 'SIGNING_KEYS_INVALID' })
    },
  )

  test('of a newer server is left to it', async () => {
    const keys = await open()
    const before = kidsOf(keys)
    const newer = Buffer.from('{"version":2,"keys":[]}').toString('base64')
    view.put({ ...(await secret())!, data: { 'keys.json': newer } })
    await pass(times.sightMs)
    expect(kidsOf(keys)).toEqual(before)
    expect((await secret())?.['data']).toEqual({ 'keys.json': newer })
  })

  test('leaves no private key in a log line or an error [ISS-R26]', async () => {
    const lines: string[] = []
    const note = (fields: object, message: string) =>
      void lines.push(`${JSON.stringify(fields, Object.getOwnPropertyNames(fields))} ${message}`)
    const log: Logger = {
      error: note,
      warn: note,
      info: note,
      debug: note,
      trace: note,
      child: () => log,
    }
    const keys = await open({ log })
    const good = (await secret())!
    const text = Buffer.from(
      String((good['data'] as Record<string, string>)['keys.json']),
      'base64',
    ).toString()
    const cut = Buffer.from(text.replace('MIG', 'XXX')).toString('base64')
    view.put({ ...good, data: { 'keys.json': cut } })
    await writtenAgain(good)
    ending.abort()
    ending = new AbortController()
    view.put({ ...good, data: { 'keys.json': cut } })
    const error: unknown = await open({ log }).catch((cause: unknown) => cause)
    const { d = '' } = firstKey.export({ format: 'jwk' })
    const body = /-----\\n([^\\]+)\\n/.exec(text)?.[1] ?? 'no body'
    const all = `${lines.join('\n')}${String(error)}${JSON.stringify(keys)}`
    expect(error).toMatchObject({ code: 'SIGNING_KEYS_INVALID' })
    expect([d, body, 'PRIVATE KEY'].filter((part) => all.includes(part))).toEqual([])
  })
})
