import { afterEach, describe, expect, test, vi } from 'vitest'
import { ApiError, type Kind, type KubeObject, silentLogger } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { ConnectionFailed } from './errors.ts'
import { type Following, follow } from './follow.ts'
import type { Follower } from './picture.ts'

const kind: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const { signal } = new AbortController()
const pauses = { firstMs: 1, longestMs: 5 }
const map = (name: string, value = '1'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns' },
  data: { value },
})
const valueOf = (object: KubeObject | undefined) =>
  object && (object['data'] as { value: string }).value

/** Writes down what it is told, and can be asked to wait for a line. */
class Diary implements Follower {
  readonly lines: string[] = []
  refuse: ((line: string) => boolean) | undefined

  put(object: KubeObject, previous?: KubeObject): void {
    const from = previous ? `${valueOf(previous)}->` : ''
    this.#write(`put ${object.metadata.name} ${from}${valueOf(object)}`)
  }

  remove(object: KubeObject): void {
    this.#write(`remove ${object.metadata.name}`)
  }

  async until(line: string): Promise<void> {
    const look = () => {
      if (!this.lines.includes(line)) throw new Error(`not told: ${line}`)
    }
    await vi.waitFor(look, { interval: 2 })
  }

  #write(line: string): void {
    if (this.refuse?.(line)) throw new Error('not now')
    this.lines.push(line)
  }
}

let stop = new AbortController()
let following: Following | undefined
afterEach(async () => {
  stop.abort()
  await following?.ended
  stop = new AbortController()
})

async function start(view: FakeClusterView, diary: Diary): Promise<Following> {
  following = follow({ view, kind, log: silentLogger, pauses }, diary, stop.signal)
  await following.synced
  await vi.waitFor(() => expect(view.openWatches).toBe(1), { interval: 2 })
  return following
}

describe('a follower', () => {
  test('is told of what is there and of every change after it, once each', async () => {
    const view = new FakeClusterView({ objects: [map('a'), map('b')] })
    const diary = new Diary()
    await start(view, diary)
    view.put(map('a', '2'))
    view.put(map('c'))
    await view.write('delete', map('b'), {}, signal)
    await diary.until('remove b')
    expect(diary.lines).toEqual(['put a 1', 'put b 1', 'put a 1->2', 'put c 1', 'remove b'])
  })

  test.each([
    ['in good order', undefined],
    ['by a lost connection', new ConnectionFailed('cut')],
    ['by an overloaded server', new ApiError('TooManyRequests', 'later')],
  ])('misses and doubles nothing when its watch is ended %s', async (_, error) => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const diary = new Diary()
    const list = vi.spyOn(view, 'list')
    await start(view, diary)
    for (let round = 2; round <= 6; round++) {
      view.cutWatches(error)
      view.put(map('a', String(round)))
      await diary.until(`put a ${round - 1}->${round}`)
    }
    expect(diary.lines).toEqual([
      'put a 1',
      ...[2, 3, 4, 5, 6].map((round) => `put a ${round - 1}->${round}`),
    ])
    expect(list).toHaveBeenCalledTimes(1)
  })

  test.each(['Expired', 'Gone', 'Timeout', 'BadRequest'] as const)(
    'is told the difference only when %s makes a new list necessary',
    async (reason) => {
      const view = new FakeClusterView({ objects: [map('same'), map('changed'), map('gone')] })
      const diary = new Diary()
      await start(view, diary)
      view.fail(new ApiError(reason, 'no'))
      await vi.waitFor(() => expect(following?.watching).toBe(false), { interval: 2 })
      view.put(map('changed', '2'))
      view.put(map('new'))
      view.fail(undefined)
      await view.write('delete', map('gone'), {}, signal)
      view.compact()
      await diary.until('remove gone')
      await diary.until('put new 1')
      expect(diary.lines.slice(3).toSorted()).toEqual([
        'put changed 1->2',
        'put new 1',
        'remove gone',
      ])
    },
  )

  test('is told of an object that was deleted and made again out of sight as both', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const diary = new Diary()
    await start(view, diary)
    view.fail(new ApiError('Expired', 'too old'))
    await vi.waitFor(() => expect(following?.watching).toBe(false), { interval: 2 })
    view.fail(undefined)
    await view.write('delete', map('a'), {}, signal)
    await view.write('create', map('a', '2'), {}, signal)
    view.compact()
    await diary.until('put a 2')
    expect(diary.lines).toEqual(['put a 1', 'remove a', 'put a 2'])
  })

  test('that throws is told the same again and nothing else first', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const diary = new Diary()
    await start(view, diary)
    let refusals = 3
    diary.refuse = (line) => line === 'put b 1' && refusals-- > 0
    view.put(map('b'))
    view.put(map('c'))
    await diary.until('put c 1')
    expect(diary.lines).toEqual(['put a 1', 'put b 1', 'put c 1'])
    expect(refusals).toBe(-1)
  })

  test('that takes its time is told one thing after the other', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const lines: string[] = []
    const slow: Follower = {
      async put(object) {
        lines.push(`begin ${object.metadata.name}`)
        await new Promise(setImmediate)
        lines.push(`end ${object.metadata.name}`)
      },
      remove() {},
    }
    following = follow({ view, kind, log: silentLogger, pauses }, slow, stop.signal)
    view.put(map('b'))
    await vi.waitFor(() => expect(lines).toContain('end b'), { interval: 2 })
    expect(lines).toEqual(['begin a', 'end a', 'begin b', 'end b'])
  })
})

describe('following', () => {
  test('is synced only after a list has succeeded', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    view.fail(new ConnectionFailed('no server yet'))
    const list = vi.spyOn(view, 'list')
    const diary = new Diary()
    following = follow({ view, kind, log: silentLogger, pauses }, diary, stop.signal)
    let synced = false
    const waiting = following.synced.then(() => {
      synced = true
    })
    await vi.waitFor(() => expect(list.mock.calls.length).toBeGreaterThan(3), { interval: 2 })
    expect(synced).toBe(false)
    view.fail(undefined)
    await waiting
    expect(diary.lines).toEqual(['put a 1'])
  })

  test('that is aborted before its first list rejects, and ends', async () => {
    const view = new FakeClusterView()
    view.fail(new ConnectionFailed('no server'))
    const run = follow({ view, kind, log: silentLogger, pauses }, new Diary(), stop.signal)
    stop.abort(new Error('enough'))
    await expect(run.synced).rejects.toThrow('enough')
    await run.ended
  })

  test('ends its watch and tells nothing more after an abort', async () => {
    const view = new FakeClusterView()
    const diary = new Diary()
    const run = await start(view, diary)
    expect(run.watching).toBe(true)
    stop.abort()
    await run.ended
    expect(view.openWatches).toBe(0)
    view.put(map('late'))
    expect(diary.lines).toEqual([])
  })

  test('leaves a server alone for as long as it asks', async () => {
    vi.useFakeTimers()
    try {
      const view = new FakeClusterView()
      const list = vi.spyOn(view, 'list')
      const details = { retryAfterSeconds: 30 }
      view.fail(new ApiError('TooManyRequests', 'later', { details }))
      following = follow({ view, kind, log: silentLogger, pauses }, new Diary(), stop.signal)
      await vi.advanceTimersByTimeAsync(29_000)
      expect(list).toHaveBeenCalledTimes(1)
      await vi.advanceTimersByTimeAsync(2_000)
      expect(list).toHaveBeenCalledTimes(2)
    } finally {
      vi.useRealTimers()
    }
  })

  test('pauses longer and longer while a server is away, up to its limit', async () => {
    vi.useFakeTimers()
    try {
      const view = new FakeClusterView()
      const list = vi.spyOn(view, 'list')
      view.fail(new ConnectionFailed('away'))
      const limits = { firstMs: 100, longestMs: 10_000 }
      following = follow(
        { view, kind, log: silentLogger, pauses: limits },
        new Diary(),
        stop.signal,
      )
      await vi.advanceTimersByTimeAsync(120_000)
      // 100 ms doubled seven times reaches the limit; each pause is cut by up to a half.
      expect(list.mock.calls.length).toBeGreaterThan(15)
      expect(list.mock.calls.length).toBeLessThan(35)
    } finally {
      vi.useRealTimers()
    }
  })
})
