import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { labCertificate, labNow, named } from '../../pki/certificate-lab.suite.ts'
import type { Credential } from '../credential.ts'
import {
  type Answer,
  deferred,
  EventLog,
  FakeClock,
  FakePlugin,
  pluginFailure,
  refusal401,
  tokenOfRun,
} from './fake-plugin.suite.ts'
import { RotatingSource, type RotationTimes } from './rotating-source.ts'

const minute = 60_000

let clock: FakeClock
let log: EventLog
let plugin: FakePlugin

beforeEach(() => {
  clock = new FakeClock()
  log = new EventLog()
})

function sourceOf(answer: Answer, times: RotationTimes = {}): RotatingSource {
  plugin = new FakePlugin(answer)
  return new RotatingSource({
    fetch: plugin.fetch,
    clock,
    observer: log,
    times,
    random: () => 0,
  })
}

/** Tokens that live for a time each. */
const livingFor =
  (ms: number): Answer =>
  (run) =>
    tokenOfRun(run, clock.now() + ms)

const shown = async (credential: Promise<Credential | undefined>) =>
  (await credential)?.token?.reveal()

describe('a credential is fetched', () => {
  test('before the first request that needs it, and not again for those after it [CRED-R15]', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    expect(plugin.runs).toBe(0)
    for (let request = 0; request < 5; request++) {
      expect(await shown(source.current())).toBe('token-1')
    }
    expect(plugin.runs).toBe(1)
  })

  test('once for a hundred who wait [CRED-R18]', async () => {
    const running = deferred<Credential>()
    const source = sourceOf(() => running.promise)
    const waiting = Array.from({ length: 100 }, () => source.current())
    running.resolve(tokenOfRun(1))
    expect(new Set(await Promise.all(waiting)).size).toBe(1)
    expect(plugin.runs).toBe(1)
  })

  test('and kept for ever if it does not expire [CRED-R16]', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    await source.current()
    clock.advance(365 * 24 * 60 * minute)
    expect(await shown(source.current())).toBe('token-1')
  })

  test('and kept until ten seconds before it expires [CRED-R16, CRED-C2]', async () => {
    const source = sourceOf(livingFor(minute), { refreshAheadMs: 0 })
    await source.current()
    clock.advance(minute - 10_001)
    expect(await shown(source.current())).toBe('token-1')
    clock.advance(1)
    expect(await shown(source.current())).toBe('token-2')
    expect(plugin.runs).toBe(2)
  })

  test('anew when its certificate ends, if it says nothing itself [CRED-C4]', async () => {
    const { certificate } = await labCertificate({
      subject: named('jane'),
      notAfter: labNow + 10 * minute,
    })
    const clientCertificate = { certPem: certificate.toString(), keyPem: new Secret('key') }
    const source = sourceOf(() => ({ clientCertificate }), { refreshAheadMs: 0 })
    await source.current()
    clock.advance(10 * minute - 10_001)
    await source.current()
    expect(plugin.runs).toBe(1)
    clock.advance(1)
    await source.current()
    expect(plugin.runs).toBe(2)
    expect(log.events[0]).toMatchObject({ certificateEndsAt: labNow + 10 * minute })
  })

  test.each([
    ['has expired already', -minute],
    ['expires within the skew', 3_000],
  ])('and used for five seconds even if it %s [CRED-C3]', async (_name, lifetime) => {
    const source = sourceOf(livingFor(lifetime))
    expect(await shown(source.current())).toBe('token-1')
    clock.advance(4_999)
    expect(await shown(source.current())).toBe('token-1')
    clock.advance(1)
    expect(await shown(source.current())).toBe('token-2')
  })
})

describe('refresh-ahead', () => {
  test.each([
    ['a minute before the end of a long life', 20 * minute, 20 * minute - 70_000],
    ['a tenth of a short life before its end', 2 * minute, 2 * minute - 22_000],
  ])('begins %s, and nobody waits for it [CRED-C2]', async (_name, lifetime, begins) => {
    const next = deferred<Credential>()
    const source = sourceOf((run) => (run === 1 ? livingFor(lifetime)(run) : next.promise))
    await source.current()
    clock.advance(begins - 1)
    await source.current()
    expect(plugin.runs).toBe(1)
    clock.advance(1)
    expect(await shown(source.current())).toBe('token-1')
    expect(await shown(source.current())).toBe('token-1')
    expect(plugin.runs).toBe(2)
    next.resolve(tokenOfRun(2, clock.now() + lifetime))
    await setImmediate()
    expect(await shown(source.current())).toBe('token-2')
  })

  test('begins later by chance, so that clients do not all come at once', async () => {
    plugin = new FakePlugin(livingFor(20 * minute))
    const source = new RotatingSource({
      fetch: plugin.fetch,
      clock,
      observer: log,
      random: () => 0.99999,
    })
    await source.current()
    clock.advance(20 * minute - 41_000)
    await source.current()
    expect(plugin.runs).toBe(1)
    clock.advance(1_000)
    await source.current()
    expect(plugin.runs).toBe(2)
  })

  test('that fails leaves the old credential in use, and is told [CRED-C5]', async () => {
    const source = sourceOf((run) => (run === 1 ? livingFor(20 * minute)(run) : pluginFailure()))
    await source.current()
    clock.advance(19 * minute)
    expect(await shown(source.current())).toBe('token-1')
    await setImmediate()
    expect(log.events.at(-1)).toMatchObject({
      type: 'refresh-failed',
      error: { code: 'EXIT' },
      usableForMs: 50_000,
    })
    expect(await shown(source.current())).toBe('token-1')
    expect(plugin.runs).toBe(2)
    clock.advance(1_000)
    await source.current()
    expect(plugin.runs).toBe(3)
  })

  test('that has failed until the end becomes a refusal with its cause [CRED-C5, CRED-S16]', async () => {
    const source = sourceOf((run) => (run === 1 ? livingFor(20 * minute)(run) : pluginFailure()))
    await source.current()
    clock.advance(19 * minute)
    await source.current()
    clock.advance(minute)
    await expect(source.current()).rejects.toMatchObject({ code: 'EXIT', exitCode: 3 })
    await expect(source.current()).rejects.toMatchObject({
      code: 'BACKING_OFF',
      exitCode: 3,
      cause: { code: 'EXIT' },
    })
  })
})

describe('a plugin that keeps failing', () => {
  test('is run again only after pauses that grow from 1 s to 30 s [CRED-C7]', async () => {
    const source = sourceOf(() => pluginFailure())
    const runsAt: number[] = []
    const start = clock.now()
    for (let second = 0; second <= 130; second++) {
      const before = plugin.runs
      await expect(source.current()).rejects.toThrow('exit code 3')
      if (plugin.runs > before) runsAt.push((clock.now() - start) / 1_000)
      clock.advance(1_000)
    }
    expect(runsAt).toEqual([0, 1, 3, 7, 15, 31, 61, 91, 121])
  })

  test('is trusted again after one success', async () => {
    const source = sourceOf(() => pluginFailure())
    for (const wait of [1_000, 2_000, 4_000]) {
      await expect(source.current()).rejects.toThrow('exit code 3')
      clock.advance(wait)
    }
    plugin.answer = livingFor(minute)
    await source.current()
    plugin.answer = () => pluginFailure()
    clock.advance(minute)
    await expect(source.current()).rejects.toMatchObject({ code: 'EXIT' })
    clock.advance(1_000)
    await expect(source.current()).rejects.toMatchObject({ code: 'EXIT' })
  })

  test('is run at once after the source was cleared', async () => {
    const source = sourceOf(() => pluginFailure())
    await expect(source.current()).rejects.toThrow('exit code 3')
    source.clear()
    await expect(source.current()).rejects.toMatchObject({ code: 'EXIT' })
    expect(plugin.runs).toBe(2)
  })
})

describe('a refused credential', () => {
  test('is replaced, and the plugin is told what the server said [CRED-R16]', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    const used = await source.current()
    expect(await shown(source.renew(used, refusal401))).toBe('token-2')
    expect(plugin.refusals).toEqual([undefined, refusal401])
    expect(await shown(source.current())).toBe('token-2')
  })

  test('is not replaced again when an older one is refused [CRED-R19]', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    const old = await source.current()
    const renewed = await Promise.all([1, 2, 3].map(() => source.renew(old, refusal401)))
    const late = await source.renew(old, refusal401)
    expect(new Set([...renewed, late]).size).toBe(1)
    expect(plugin.runs).toBe(2)
  })

  test('does not make the plugin run for ever [CRED-S17]', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    const runsAt: number[] = []
    const start = clock.now()
    for (let second = 0; second <= 100; second++) {
      const before = plugin.runs
      for (let request = 0; request < 20; request++) {
        await source.renew(await source.current(), refusal401)
      }
      if (plugin.runs > before) runsAt.push((clock.now() - start) / 1_000)
      clock.advance(1_000)
    }
    expect(runsAt).toEqual([0, 1, 3, 7, 15, 31, 61, 91])
    expect(plugin.runs).toBe(runsAt.length + 1)
  })

  test('is not tried again if the plugin gives the same one', async () => {
    const source = sourceOf(() => tokenOfRun(1))
    const used = await source.current()
    expect(await source.renew(used, refusal401)).toBeUndefined()
    expect(log.types()).not.toContain('rotate')
  })

  test('is not replaced by anything if the plugin fails; the refusal stands', async () => {
    const source = sourceOf((run) => (run === 1 ? tokenOfRun(1) : pluginFailure()))
    const used = await source.current()
    expect(await source.renew(used, refusal401)).toBeUndefined()
    expect(log.types()).toEqual(['fetched', 'refresh-failed'])
  })
})

describe('one caller', () => {
  test('who gives up is released at once, and the run goes on for the others [CRED-C8]', async () => {
    const running = deferred<Credential>()
    const source = sourceOf(() => running.promise)
    const impatient = new AbortController()
    const first = source.current(impatient.signal)
    const second = source.current(new AbortController().signal)
    impatient.abort(new Error('gone'))
    await expect(first).rejects.toThrow('gone')
    expect(plugin.signals[0]?.aborted).toBe(false)
    running.resolve(tokenOfRun(1))
    expect(await shown(second)).toBe('token-1')
    expect(plugin.runs).toBe(1)
  })

  test('who has given up before does not start anything', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    await expect(source.current(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
    expect(plugin.runs).toBe(0)
  })
})

describe('listeners', () => {
  test('are told of each replacement, not of the first credential, until they stop', async () => {
    const source = sourceOf((run) => tokenOfRun(run))
    const seen: string[] = []
    const stop = source.onRotate((next, previous) => {
      seen.push(`${previous.token?.reveal()} -> ${next.token?.reveal()}`)
    })
    const first = await source.current()
    expect(seen).toEqual([])
    await source.renew(first, refusal401)
    source.clear()
    await source.current()
    expect(seen).toEqual(['token-1 -> token-2', 'token-2 -> token-3'])
    stop()
    source.clear()
    await source.current()
    expect(seen).toHaveLength(2)
  })
})

describe('a source that is disposed of', () => {
  test('ends the run, rejects who waits and refuses everybody after [CRED-C10]', async () => {
    const running = deferred<Credential>()
    const source = sourceOf(() => running.promise)
    const waiting = source.current()
    source.dispose()
    expect(plugin.signals[0]?.aborted).toBe(true)
    running.resolve(tokenOfRun(1))
    await expect(waiting).rejects.toMatchObject({ code: 'DISPOSED' })
    await expect(source.current()).rejects.toMatchObject({ code: 'DISPOSED' })
    await expect(source.renew(tokenOfRun(1), refusal401)).rejects.toMatchObject({
      code: 'DISPOSED',
    })
  })
})
