import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  ApiError,
  type ClusterView,
  type Kind,
  type KubeObject,
  silentLogger,
  type WatchEvent,
} from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { ConnectionFailed } from './errors.ts'
import { createInformer, type Informer, type InformerOptions } from './informer.ts'
import type { Change } from './object-cache.ts'

const kind: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const { signal } = new AbortController()
const backoff = { initialMs: 1, maxMs: 5 }
const map = (name: string, value = '1'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns' },
  data: { value },
})
const valueOf = (object: KubeObject | undefined) =>
  object && (object['data'] as { value: string }).value

let stop = new AbortController()
let informer: Informer | undefined
afterEach(async () => {
  stop.abort()
  await informer?.ended
  stop = new AbortController()
})

/** Records the changes that it is called for, and can wait for a line. */
class Recorder {
  readonly lines: string[] = []
  refuse: ((line: string) => boolean) | undefined

  readonly listen = ({ name, before, after }: Change): void => {
    const from = before ? `${valueOf(before)}->` : ''
    const line = after ? `put ${name} ${from}${valueOf(after)}` : `remove ${name}`
    if (this.refuse?.(line)) throw new Error('not now')
    this.lines.push(line)
  }

  async until(line: string): Promise<void> {
    const look = () => {
      if (!this.lines.includes(line)) throw new Error(`not reported: ${line}`)
    }
    await vi.waitFor(look, { interval: 2 })
  }
}

function open(view: ClusterView, options: Partial<InformerOptions> = {}): Informer {
  informer = createInformer({
    view,
    kind,
    log: silentLogger,
    backoff,
    signal: stop.signal,
    ...options,
  })
  return informer
}

async function start(
  view: FakeClusterView,
  recorder: Recorder,
  options: Partial<InformerOptions> = {},
): Promise<Informer> {
  const opened = open(view, options)
  opened.onChange(recorder.listen)
  await opened.synced
  await vi.waitFor(() => expect(view.openWatches).toBe(1), { interval: 2 })
  return opened
}

const untilDown = () => vi.waitFor(() => expect(informer?.watching).toBe(false), { interval: 2 })

describe('a listener', () => {
  test('is called for what is there and for every change after it, once each', async () => {
    const view = new FakeClusterView({ objects: [map('a'), map('b')] })
    const recorder = new Recorder()
    await start(view, recorder)
    view.put(map('a', '2'))
    view.put(map('c'))
    await view.write('delete', map('b'), {}, signal)
    await recorder.until('remove b')
    expect(recorder.lines).toEqual(['put a 1', 'put b 1', 'put a 1->2', 'put c 1', 'remove b'])
  })

  test.each([
    ['in good order', undefined],
    ['by a lost connection', new ConnectionFailed('cut')],
    ['by an overloaded server', new ApiError('TooManyRequests', 'later')],
  ])('misses and doubles nothing when its watch is ended %s', async (_, error) => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const recorder = new Recorder()
    const list = vi.spyOn(view, 'list')
    await start(view, recorder)
    for (let round = 2; round <= 6; round++) {
      view.cutWatches(error)
      view.put(map('a', String(round)))
      await recorder.until(`put a ${round - 1}->${round}`)
    }
    expect(recorder.lines).toEqual([
      'put a 1',
      ...[2, 3, 4, 5, 6].map((round) => `put a ${round - 1}->${round}`),
    ])
    expect(list).toHaveBeenCalledTimes(1)
  })

  test.each(['Expired', 'Gone', 'Timeout', 'BadRequest'] as const)(
    'is called for the difference only when %s makes a new list necessary',
    async (reason) => {
      const view = new FakeClusterView({ objects: [map('same'), map('changed'), map('gone')] })
      const recorder = new Recorder()
      await start(view, recorder)
      view.fail(new ApiError(reason, 'no'))
      await untilDown()
      view.put(map('changed', '2'))
      view.put(map('new'))
      view.fail(undefined)
      await view.write('delete', map('gone'), {}, signal)
      view.compact()
      await recorder.until('remove gone')
      await recorder.until('put new 1')
      expect(recorder.lines.slice(3).toSorted()).toEqual([
        'put changed 1->2',
        'put new 1',
        'remove gone',
      ])
    },
  )

  test('is called for both the deletion and the creation that a list shows as one', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const recorder = new Recorder()
    await start(view, recorder)
    view.fail(new ApiError('Expired', 'too old'))
    await untilDown()
    view.fail(undefined)
    await view.write('delete', map('a'), {}, signal)
    await view.write('create', map('a', '2'), {}, signal)
    view.compact()
    await recorder.until('put a 2')
    expect(recorder.lines).toEqual(['put a 1', 'remove a', 'put a 2'])
  })

  test('that throws is called with the same again and with nothing else first', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const recorder = new Recorder()
    await start(view, recorder)
    let refusals = 3
    recorder.refuse = (line) => line === 'put b 1' && refusals-- > 0
    view.put(map('b'))
    view.put(map('c'))
    await recorder.until('put c 1')
    expect(recorder.lines).toEqual(['put a 1', 'put b 1', 'put c 1'])
    expect(refusals).toBe(-1)
  })

  test('that returns a promise is called for one change after the other', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const lines: string[] = []
    open(view).onChange(async ({ name }) => {
      lines.push(`begin ${name}`)
      await nextTurn()
      lines.push(`end ${name}`)
    })
    view.put(map('b'))
    await vi.waitFor(() => expect(lines).toContain('end b'), { interval: 2 })
    expect(lines).toEqual(['begin a', 'end a', 'begin b', 'end b'])
  })

  test('that throws is called again alone, and none of the others twice', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const [first, second, third] = [new Recorder(), new Recorder(), new Recorder()]
    let refusals = 2
    second.refuse = () => refusals-- > 0
    const opened = open(view)
    for (const { listen } of [first, second, third]) opened.onChange(listen)
    await opened.synced
    expect([first, second, third].map(({ lines }) => lines)).toEqual(Array(3).fill(['put a 1']))
  })

  test('that is removed is not called any more, not even again', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const recorder = new Recorder()
    const opened = open(view)
    let calls = 0
    const remove = opened.onChange(() => {
      calls += 1
      remove()
      throw new Error('not now')
    })
    opened.onChange(recorder.listen)
    await opened.synced
    view.put(map('b'))
    await recorder.until('put b 1')
    expect(calls).toBe(1)
  })

  test('finds the change in the cache already', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const seen: unknown[] = []
    const opened = open(view)
    opened.onChange(({ namespace, name }) => {
      seen.push(valueOf(opened.get({ namespace, name })))
    })
    await opened.synced
    view.put(map('a', '2'))
    await view.write('delete', map('a'), {}, signal)
    await vi.waitFor(() => expect(seen).toEqual(['1', '2', undefined]), { interval: 2 })
  })
})

describe('an informer', () => {
  test('is synced only after a list has succeeded', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    view.fail(new ConnectionFailed('no server yet'))
    const list = vi.spyOn(view, 'list')
    const recorder = new Recorder()
    const opened = open(view)
    opened.onChange(recorder.listen)
    let synced = false
    const waiting = opened.synced.then(() => {
      synced = true
    })
    await vi.waitFor(() => expect(list.mock.calls.length).toBeGreaterThan(3), { interval: 2 })
    expect(synced).toBe(false)
    view.fail(undefined)
    await waiting
    expect(recorder.lines).toEqual(['put a 1'])
  })

  test('that is aborted before its first list rejects, and ends', async () => {
    const view = new FakeClusterView()
    view.fail(new ConnectionFailed('no server'))
    const run = open(view)
    stop.abort(new Error('enough'))
    await expect(run.synced).rejects.toThrow('enough')
    await run.ended
  })

  test('ends its watch and reports nothing more after an abort', async () => {
    const view = new FakeClusterView()
    const recorder = new Recorder()
    const run = await start(view, recorder)
    expect(run.watching).toBe(true)
    stop.abort()
    await run.ended
    expect(view.openWatches).toBe(0)
    view.put(map('late'))
    expect(recorder.lines).toEqual([])
  })

  test('does not retry before the Retry-After of a server', async () => {
    vi.useFakeTimers()
    try {
      const view = new FakeClusterView()
      const list = vi.spyOn(view, 'list')
      const details = { retryAfterSeconds: 30 }
      view.fail(new ApiError('TooManyRequests', 'later', { details }))
      open(view)
      await vi.advanceTimersByTimeAsync(29_000)
      expect(list).toHaveBeenCalledTimes(1)
      await vi.advanceTimersByTimeAsync(2_000)
      expect(list).toHaveBeenCalledTimes(2)
    } finally {
      vi.useRealTimers()
    }
  })

  test('waits longer and longer while a server is away, up to its limit', async () => {
    vi.useFakeTimers()
    try {
      const view = new FakeClusterView()
      const list = vi.spyOn(view, 'list')
      view.fail(new ConnectionFailed('away'))
      open(view, { backoff: { initialMs: 100, maxMs: 10_000 } })
      await vi.advanceTimersByTimeAsync(120_000)
      // 100 ms doubled seven times reaches the limit; each delay is shortened by up to a half.
      expect(list.mock.calls.length).toBeGreaterThan(15)
      expect(list.mock.calls.length).toBeLessThan(35)
    } finally {
      vi.useRealTimers()
    }
  })

  test('gives the event loop a turn after so many objects [SEC-R506]', async () => {
    const objects = Array.from({ length: 1_000 }, (_, index) => map(`m${index}`))
    const turns = new Map<number, number>()
    let turn = 0
    let isOver = false
    const counting = (async () => {
      while (!isOver) {
        await nextTurn()
        turn += 1
      }
    })()
    const opened = open(new FakeClusterView({ objects }))
    opened.onChange(() => void turns.set(turn, (turns.get(turn) ?? 0) + 1))
    await opened.synced
    isOver = true
    await counting
    expect(Math.max(...turns.values())).toBeLessThanOrEqual(64)
  })

  test('is not held up by a watch that does not end when it is aborted', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    view.watch = silentWatch
    const opened = open(view)
    await opened.synced
    stop.abort()
    await opened.ended
    expect(opened.watching).toBe(false)
  })

  test('calls back after each list but the first', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const onRelist = vi.fn()
    await start(view, new Recorder(), { onRelist })
    expect(onRelist).not.toHaveBeenCalled()
    view.fail(new ApiError('Expired', 'too old'))
    await untilDown()
    view.fail(undefined)
    await vi.waitFor(() => expect(onRelist).toHaveBeenCalledOnce(), { interval: 2 })
  })

  test('shows own writes at once and reports them to nobody', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const recorder = new Recorder()
    const opened = await start(view, recorder)
    const written = await view.write('create', map('b'), {}, signal)
    opened.applied(written)
    expect([...opened.list()].map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
    view.put(map('c'))
    await recorder.until('put c 1')
    expect(recorder.lines).toEqual(['put a 1', 'put c 1'])
  })

  test('ignores an own write that others have undone meanwhile', async () => {
    const view = new FakeClusterView()
    const recorder = new Recorder()
    const opened = await start(view, recorder)
    const written = await view.write('create', map('a'), {}, signal)
    await view.write('delete', map('a'), {}, signal)
    await recorder.until('remove a')
    opened.applied(written)
    expect([...opened.list()]).toEqual([])
  })
})

const silentWatch = (): AsyncIterable<WatchEvent> => ({
  [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
})

describe('a cache', () => {
  let now = 0
  const clock = { now: () => 0, monotonic: () => now }
  const at = (time: number) => {
    now = time
  }
  const opened = async (view: ClusterView): Promise<Informer> => {
    at(1_000)
    const result = open(view, { clock })
    await result.synced
    return result
  }

  test('is confirmed by its list from the time of the request on, by events and by bookmarks', async () => {
    at(1_000)
    const view = new FakeClusterView({ objects: [map('a')] })
    const list = view.list.bind(view)
    view.list = (...request) => {
      at(2_000)
      return list(...request)
    }
    let send = (_event: WatchEvent) => {}
    view.watch = async function* () {
      for (;;)
        yield await new Promise<WatchEvent>((resolve) => {
          send = resolve
        })
    }
    const informer = await opened(view)
    expect(informer.confirmedAt).toBe(1_000)
    const confirmedBy = async (time: number, type: WatchEvent['type']): Promise<number> => {
      at(time)
      send({ type, object: { ...map('a'), metadata: { name: 'a', resourceVersion: `${time}` } } })
      await nextTurn()
      return informer.confirmedAt
    }
    await nextTurn()
    expect(await confirmedBy(3_000, 'MODIFIED')).toBe(3_000)
    expect(await confirmedBy(4_000, 'BOOKMARK')).toBe(4_000)
  })

  test('that was heard of lately is confirmed without a request', async () => {
    const view = new FakeClusterView()
    const informer = await opened(view)
    const list = vi.spyOn(view, 'list')
    at(1_999)
    expect(await informer.confirm(1_000, signal)).toBe(true)
    expect(list).not.toHaveBeenCalled()
  })

  test('that has what a list shows is confirmed by it', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    view.watch = silentWatch
    const informer = await opened(view)
    const list = vi.spyOn(view, 'list')
    at(2_000)
    expect(await informer.confirm(1_000, signal)).toBe(true)
    expect([informer.confirmedAt, list.mock.calls.length]).toEqual([2_000, 1])
  })

  test('whose watch died is replaced when a list shows it, and confirmed then', async () => {
    const view = new FakeClusterView({ objects: [map('a'), map('b')] })
    view.watch = silentWatch
    const informer = await opened(view)
    view.put(map('a', '2'))
    await view.write('delete', map('b'), {}, signal)
    at(2_000)
    expect(await informer.confirm(1_000, signal)).toBe(true)
    expect([...informer.list()].map(valueOf)).toEqual(['2'])
    expect([informer.confirmedAt, informer.watching]).toEqual([2_000, true])
  })

  test('is not undone by a list that is older than an event', async () => {
    const view = new FakeClusterView()
    const recorder = new Recorder()
    const informer = await start(view, recorder)
    const old = await view.list(kind, {}, signal)
    view.put(map('a'))
    await recorder.until('put a 1')
    vi.spyOn(view, 'list').mockResolvedValueOnce(old)
    expect(await informer.confirm(0, signal)).toBe(true)
    expect(recorder.lines).toEqual(['put a 1'])
  })

  test('is not confirmed by a cluster that refuses, or that does not respond', async () => {
    const view = new FakeClusterView()
    view.watch = silentWatch
    const informer = await opened(view)
    at(2_000)
    view.fail(new ConnectionFailed('away'))
    await expect(informer.confirm(1_000, signal)).rejects.toThrow('away')
    view.fail(undefined)
    view.list = () => new Promise(() => {})
    const within = new AbortController()
    const confirmed = informer.confirm(1_000, within.signal)
    within.abort(new Error('too late'))
    await expect(confirmed).rejects.toThrow('too late')
    expect(informer.confirmedAt).toBe(1_000)
  })

  test('is not confirmed before its first list, nor before a listener has taken what is in it', async () => {
    const view = new FakeClusterView()
    let succeed = () => {}
    const informer = open(view, { clock })
    informer.onChange(
      () =>
        new Promise((resolve) => {
          succeed = resolve
        }),
    )
    await informer.synced
    view.put(map('a'))
    await vi.waitFor(() => expect([...informer.list()]).toHaveLength(1), { interval: 2 })
    expect(await informer.confirm(0, signal)).toBe(false)
    succeed()
    await nextTurn()
    expect(await informer.confirm(0, signal)).toBe(true)
  })

  test('is not confirmed by an empty list before its own first one', async () => {
    const view = new FakeClusterView()
    vi.spyOn(view, 'list').mockReturnValueOnce(new Promise(() => {}))
    const informer = open(view, { clock })
    const within = new AbortController()
    const confirmed = informer.confirm(0, within.signal)
    await nextTurn()
    within.abort(new Error('too late'))
    await expect(confirmed).rejects.toThrow('too late')
    expect(informer.confirmedAt).toBe(Number.NEGATIVE_INFINITY)
  })

  test('is not confirmed by a list that was requested earlier', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    const informer = await opened(view)
    const list = vi.spyOn(view, 'list')
    let respond = () => {}
    list.mockImplementationOnce(async () => {
      await new Promise<void>((resolve) => {
        respond = resolve
      })
      return { items: [], resourceVersion: '1000' }
    })
    view.cutWatches(new ApiError('Expired', 'too old'))
    await vi.waitFor(() => expect(list).toHaveBeenCalledOnce(), { interval: 2 })
    await view.write('delete', map('a'), {}, signal)
    at(2_000)
    const confirmed = informer.confirm(0, signal)
    await nextTurn()
    respond()
    expect(await confirmed).toBe(false)
    expect(informer.confirmedAt).toBe(1_000)
  })

  test('that cannot be listed yet is confirmed by the first list', async () => {
    const view = new FakeClusterView({ objects: [map('a')] })
    view.fail(new ConnectionFailed('away'))
    const informer = open(view, { clock, backoff: { initialMs: 60_000, maxMs: 60_000 } })
    await nextTurn()
    view.fail(undefined)
    expect(await informer.confirm(0, signal)).toBe(true)
    expect([...informer.list()]).toHaveLength(1)
  })
})
