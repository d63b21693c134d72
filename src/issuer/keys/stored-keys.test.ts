import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Logger, type SealedValues, silentLogger } from '../../core/index.ts'
import { signingKey } from '../../jose/index.ts'
import { privateKeyFor } from '../../jose/jose.suite.ts'
import { openMemoryStore, SealedStore } from '../../storage/index.ts'
import { defaultRotationTimes as times } from './key-ring.ts'
import { beginRotation, readSigningKeys, replaceKeys } from './rotation.ts'
import { StoredKeys, type StoredKeysDeps } from './stored-keys.ts'
import { encodeRing, signingKeysName } from './stored-ring.ts'

const clock = { now: () => Date.now(), monotonic: () => Date.now() }
const firstKey = privateKeyFor('ES256')
const hour = 3_600_000
const day = 24 * hour

let ending: AbortController
let values: TestValues
beforeEach(() => {
  vi.useFakeTimers({
    now: 1_800_000_000_000,
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'],
  })
  ending = new AbortController()
  values = new TestValues()
})
afterEach(() => {
  ending.abort()
  vi.useRealTimers()
})

/** Sealed values in memory, out of reach if a test says so. */
class TestValues implements SealedValues {
  readonly #sealed = new SealedStore(openMemoryStore(), randomBytes(32), silentLogger)
  failure: Error | undefined
  /** What is written is there at once; the response to the writer comes when it may. */
  response = Promise.resolve()

  async get(...args: Parameters<SealedValues['get']>) {
    if (this.failure) throw this.failure
    return this.#sealed.get(...args)
  }

  async change(...args: Parameters<SealedValues['change']>) {
    if (this.failure) throw this.failure
    const { response } = this
    const isWritten = await this.#sealed.change(...args)
    await response
    return isWritten
  }

  watch(...args: Parameters<SealedValues['watch']>) {
    this.#sealed.watch(...args)
  }

  /** Writes as another server does. */
  async put(value: Buffer): Promise<void> {
    await this.#sealed.change(signingKeysName, () => value, new AbortController().signal)
  }
}

const open = (more: Partial<StoredKeysDeps> = {}): Promise<StoredKeys> =>
  StoredKeys.open({
    values,
    clock,
    log: silentLogger,
    signal: ending.signal,
    firstKey: async () => firstKey,
    ...more,
  })
const keeper = () => ({ values, clock })
const stages = async (): Promise<string> => {
  const keys = await readSigningKeys(keeper(), ending.signal)
  return keys.map(({ stage }) => stage).join(', ')
}
const kidsOf = (keys: StoredKeys): string[] => keys.current.published.keys.map(({ kid }) => kid)
const stored = async (): Promise<Buffer> =>
  (await values.get(signingKeysName, ending.signal))?.value ?? Buffer.alloc(0)
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

describe('with a hundred keys, as many as relying parties read [ISS-G10]', () => {
  const keys = Array.from({ length: 100 }, () => signingKey(privateKeyFor('ES256')))
  const putRing = (lastTokenMs: number): Promise<void> => {
    const now = Date.now()
    const ring = keys.map(({ kid }, index) => ({
      kid,
      publishedAt: now - 2 * day,
      signsFrom: now - 2 * day + index,
      tokensUntil: now + (index === 0 ? lastTokenMs : 365 * day),
    }))
    return values.put(encodeRing({ ring, keys: new Map(keys.map((key) => [key.kid, key])) }))
  }

  test('rotate is refused, and says what keeps them', async () => {
    await putRing(365 * day)
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
    await putRing(3 * hour)
    const server = await open({ rotationPeriodMs: hour, log })
    await pass(2 * hour)
    expect(kidsOf(server)).toEqual(keys.map(({ kid }) => kid))
    expect(warnings).toEqual([expect.stringContaining('rotation is suspended until')])
    await pass(hour + times.marginMs)
    const followed = () =>
      expect(kidsOf(server).slice(0, 99)).toEqual(keys.slice(1).map(({ kid }) => kid))
    await vi.waitFor(followed, { timeout: 15_000 })
    await vi.waitFor(() => expect(kidsOf(server)).toHaveLength(100), { timeout: 15_000 })
  })
})

test('an answer that comes late does not undo what was done since [ISS-G5]', async () => {
  const keys = await open()
  const { kid } = keys.current.signer
  let arrive = () => {}
  values.response = new Promise((resolve) => {
    arrive = resolve
  })
  const noting = keys.noteToken(kid, Date.now() + day)
  await pass(0)
  values.response = Promise.resolve()
  const [report] = await replaceKeys(keeper(), ending.signal)
  await pass(0)
  arrive()
  await noting
  expect(kidsOf(keys)).toEqual([report?.kid])
})

describe('a server whose keys are stale [ISS-G4]', () => {
  test('stops to sign and to publish before others could go ahead, and goes on when it sees them again', async () => {
    const keys = await open()
    values.failure = new Error('no network')
    await pass(times.maxStaleMs)
    expect(() => keys.requireFresh()).not.toThrow()
    await pass(1)
    expect(() => keys.requireFresh()).toThrow('could not be read for 10 minutes')
    values.failure = undefined
    await pass(times.maxStaleMs / 5)
    expect(() => keys.requireFresh()).not.toThrow()
  })

  test('takes no longer than a part of the time that a new key is shown before it signs', () => {
    expect(times.maxStaleMs + hour + 20 * 60_000).toBeLessThanOrEqual(times.publishMs)
  })
})

describe('keys that cannot be read', () => {
  test.each([
    ['rubbish', 'x'],
    ['nothing', ''],
    ['no key', '{"version":1,"keys":[]}'],
    ['keys of a newer server', '{"version":2,"keys":[]}'],
  ])('%s are not taken by a server that runs, and stop one that starts', async (_name, text) => {
    const errors: unknown[] = []
    const log: Logger = { ...silentLogger, error: (fields) => void errors.push(fields) }
    const keys = await open({ log })
    const before = kidsOf(keys)
    await values.put(Buffer.from(text))
    await pass(0)
    expect(kidsOf(keys)).toEqual(before)
    expect(errors).toHaveLength(1)
    expect((await stored()).toString()).toBe(text)
    await expect(open()).rejects.toMatchObject({ code: 'SIGNING_KEYS_INVALID' })
  })

  test('leave no private key in a log line or an error [ISS-R26]', async () => {
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
    const text = (await stored()).toString()
    await values.put(Buffer.from(text.replace('MIG', 'XXX')))
    const error: unknown = await open({ log }).catch((cause: unknown) => cause)
    const { d = '' } = firstKey.export({ format: 'jwk' })
    const body = /-----\\n([^\\]+)\\n/.exec(text)?.[1] ?? 'no body'
    const all = `${lines.join('\n')}${String(error)}${JSON.stringify(keys)}`
    expect(error).toMatchObject({ code: 'SIGNING_KEYS_INVALID' })
    expect([d, body, 'PRIVATE KEY'].filter((part) => all.includes(part))).toEqual([])
  })
})
