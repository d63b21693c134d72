import { describe, expect, test, vi } from 'vitest'
import { silentLogger } from '../core/index.ts'
import { RemoteKeySet, type RemoteKeySetOptions } from './remote-key-set.ts'

const second = 1_000

/** Keys without a network, two clocks that are moved by hand, and the number of loads. */
class KeyServer {
  wallMs = 1_800_000_000_000
  monotonicMs = 0
  keys = ['a']
  maxAgeMs: number | undefined
  failure: Error | undefined
  loads = 0
  readonly removed: string[] = []
  readonly ended = new AbortController()
  readonly set: RemoteKeySet<string>

  constructor(options: Partial<RemoteKeySetOptions<string>> = {}) {
    this.set = new RemoteKeySet<string>({
      load: async () => {
        this.loads += 1
        await Promise.resolve()
        if (this.failure) throw this.failure
        return {
          keys: new Map(this.keys.map((kid) => [kid, `key ${kid}`])),
          maxAgeMs: this.maxAgeMs,
        }
      },
      timeoutMs: 5 * second,
      cooldownMs: 30 * second,
      retryMs: 5 * second,
      graceMs: 0,
      maxStaleMs: 600 * second,
      clock: { now: () => this.wallMs, monotonic: () => this.monotonicMs },
      log: silentLogger,
      signal: this.ended.signal,
      ...options,
    })
    this.set.onRemoved((kid) => this.removed.push(kid))
  }

  pass(ms: number): void {
    this.wallMs += ms
    this.monotonicMs += ms
  }

  async kids(kid?: string): Promise<string> {
    return [...(await this.set.keysFor(kid)).keys()].join(' ')
  }
}

describe('keys are loaded', () => {
  test('when first needed, once for all callers that wait', async () => {
    const server = new KeyServer()
    expect([server.loads, server.set.unavailable]).toEqual([0, true])
    const all = await Promise.all(Array.from({ length: 100 }, () => server.kids('a')))
    expect([new Set(all), server.loads]).toEqual([new Set(['a']), 1])
    expect((await server.set.keysFor('a')).get('a')).toBe('key a')
  })

  test('for an unknown key id, but not within the cooldown', async () => {
    const server = new KeyServer()
    await server.kids()
    server.keys = ['a', 'b']
    expect(await server.kids('b')).toBe('a')
    server.pass(30 * second)
    expect(await server.kids('b')).toBe('a b')
    for (let index = 0; index < 1_000; index++) await server.kids(`unknown ${index}`)
    expect(server.loads).toBe(2)
  })

  test('again after a failure, but not within the retry time', async () => {
    const server = new KeyServer()
    server.failure = new Error('gone')
    expect([await server.kids('a'), server.set.failure]).toEqual(['', server.failure])
    server.failure = undefined
    expect(await server.kids('a')).toBe('')
    server.pass(5 * second)
    expect([await server.kids('a'), server.set.failure]).toEqual(['a', undefined])
    expect(server.loads).toBe(2)
  })

  test('when they have expired, and in the background before that', async () => {
    const server = new KeyServer()
    server.maxAgeMs = 100 * second
    await server.kids()
    server.pass(79 * second)
    await server.kids()
    expect(server.loads).toBe(1)
    server.keys = ['b']
    server.pass(second)
    expect([await server.kids(), server.loads]).toEqual(['a', 2])
    await new Promise(setImmediate)
    expect(await server.kids()).toBe('b')
    server.keys = ['c']
    server.pass(100 * second)
    expect(await server.kids()).toBe('c')
  })

  test('periodically after the start, and sooner while there are none', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const server = new KeyServer({ refreshEveryMs: 60 * second })
      server.failure = new Error('gone')
      await server.set.start()
      vi.advanceTimersByTime(5 * second)
      expect(server.loads).toBe(2)
      server.failure = undefined
      await vi.waitFor(() => {
        vi.advanceTimersByTime(5 * second)
        expect(server.set.unavailable).toBe(false)
      })
      const before = server.loads
      vi.advanceTimersByTime(60 * second)
      expect(server.loads).toBe(before + 1)
      server.ended.abort()
      await new Promise(setImmediate)
      vi.advanceTimersByTime(600 * second)
      expect(server.loads).toBe(before + 1)
    } finally {
      vi.useRealTimers()
    }
  })

  test('within a time limit, even if the load ignores its signal', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const server = new KeyServer({ load: () => new Promise(() => {}) })
      const waiting = server.kids('a')
      vi.advanceTimersByTime(5 * second)
      expect(await waiting).toBe('')
      expect(server.set.failure).toMatchObject({ name: 'TimeoutError' })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('keys are trusted', () => {
  test('while none can be loaded, up to the maximum staleness', async () => {
    const server = new KeyServer()
    server.maxAgeMs = 100 * second
    await server.kids()
    server.failure = new Error('gone')
    server.pass(700 * second)
    expect([await server.kids(), server.set.unavailable]).toEqual(['a', false])
    server.pass(1)
    expect([await server.kids(), server.set.unavailable]).toEqual(['', true])
  })

  test('for their grace after they were last published', async () => {
    const server = new KeyServer({ graceMs: 300 * second })
    await server.kids()
    server.keys = ['b']
    server.pass(299 * second)
    expect([await server.kids('b'), server.removed]).toEqual(['a b', []])
    server.pass(30 * second)
    expect([await server.kids('c'), server.removed]).toEqual(['b', ['a']])
  })

  test('not at all after that, if there is no grace', async () => {
    const server = new KeyServer()
    server.maxAgeMs = second
    await server.kids()
    server.keys = ['b']
    server.pass(30 * second)
    expect([await server.kids(), server.removed]).toEqual(['b', ['a']])
  })

  test.each([
    ['the wall clock is set back', -86_400 * second, 700 * second],
    ['the machine was suspended', 700 * second, 0],
  ])('no longer when %s', async (_name, wallMs, monotonicMs) => {
    const server = new KeyServer()
    await server.kids()
    server.failure = new Error('gone')
    server.wallMs += wallMs
    server.monotonicMs += monotonicMs
    expect([await server.kids('a'), server.set.unavailable]).toEqual(['', true])
  })
})
