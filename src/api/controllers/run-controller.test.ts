import { setImmediate as immediately } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { ApiError, type KubeObject, silentLogger, systemClock } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { configMap } from '../kinds/index.ts'
import { type Controller, type Outcome, runController } from './run-controller.ts'

const object = (name: string, value = ''): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'n' },
  data: { value },
})

const never = new AbortController().signal

/** A controller that notes what it was asked to look at, and what it knew then. */
class Recorder {
  readonly seen: string[] = []
  readonly controller: Controller
  #wake = () => {}

  constructor(outcome: (key: string, attempt: number) => Outcome = () => undefined) {
    const attempts = new Map<string, number>()
    this.controller = {
      name: 'recorder',
      backoff: { initialMs: 1, maxMs: 4 },
      start: ({ watch }) => {
        const objects = watch<unknown>({
          kind: configMap.kind,
          project: (each) => each['data'],
          equals: isDeepStrictEqual,
          keysOf: ({ name }) => [name],
        })
        return async (key) => {
          const attempt = (attempts.get(key) ?? 0) + 1
          attempts.set(key, attempt)
          const known = objects.get({ namespace: 'n', name: key })
          this.seen.push(`${key} ${JSON.stringify(known ?? 'gone')}`)
          this.#wake()
          return outcome(key, attempt)
        }
      },
    }
  }

  until(entry: string): Promise<void> {
    return this.untilTrue(() => this.seen.includes(entry))
  }

  async untilTrue(isRight: () => boolean): Promise<void> {
    while (!isRight()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

/** Returns what stops it again. */
function start(view: FakeClusterView, recorder: Recorder): () => Promise<void> {
  const abort = new AbortController()
  const running = runController(
    recorder.controller,
    { view, log: silentLogger, clock: systemClock },
    abort.signal,
  )
  const stop = async () => {
    abort.abort()
    await running
  }
  onTestFinished(stop)
  return stop
}

/** Ends all watches; what happens next, nobody watches. */
async function cut(view: FakeClusterView, error: Error): Promise<void> {
  view.cutWatches(error)
  while (view.openWatches > 0) await immediately()
}

const has = (name: string, value = '') => `${name} ${JSON.stringify({ value })}`

test('every object is looked at once at the start and again when it changes or goes', async () => {
  const view = new FakeClusterView({ objects: [object('a'), object('b')] })
  const recorder = new Recorder()
  start(view, recorder)
  await recorder.until(has('b'))
  view.put(object('a', '2'))
  await recorder.until(has('a', '2'))
  await view.write('delete', object('b'), {}, AbortSignal.timeout(1_000))
  await recorder.until('b "gone"')
  expect(recorder.seen).toEqual([has('a'), has('b'), has('a', '2'), 'b "gone"'])
})

test('a change of what does not matter goes unnoticed', async () => {
  const view = new FakeClusterView({ objects: [object('a')] })
  const recorder = new Recorder()
  start(view, recorder)
  await recorder.until(has('a'))
  const labelled = object('a')
  labelled.metadata.labels = { x: 'y' }
  view.put(labelled)
  view.put(object('b'))
  await recorder.until(has('b'))
  expect(recorder.seen).toEqual([has('a'), has('b')])
})

test('a key whose work fails is tried again', async () => {
  const view = new FakeClusterView({ objects: [object('a')] })
  const recorder = new Recorder((_key, attempt) => {
    if (attempt < 3) throw new Error('not yet')
    return undefined
  })
  start(view, recorder)
  await recorder.untilTrue(() => recorder.seen.length === 3)
  expect(recorder.seen).toEqual([has('a'), has('a'), has('a')])
})

test('changes during a lost watch are not missed', async () => {
  const view = new FakeClusterView({ objects: [object('a')] })
  const recorder = new Recorder()
  start(view, recorder)
  await recorder.until(has('a'))
  await cut(view, new Error('connection reset'))
  view.put(object('a', '2'))
  await recorder.until(has('a', '2'))
  expect(recorder.seen).toEqual([has('a'), has('a', '2')])
})

test('when history is gone everything is listed again, and what vanished is noticed', async () => {
  const view = new FakeClusterView({ objects: [object('a'), object('b')] })
  const recorder = new Recorder()
  start(view, recorder)
  await recorder.until(has('b'))
  await cut(view, new ApiError('Expired', 'too old resource version'))
  await view.write('delete', object('a'), {}, AbortSignal.timeout(1_000))
  view.put(object('c'))
  view.compact()
  await recorder.until('a "gone"')
  await recorder.until(has('c'))
  expect(recorder.seen.toSorted()).toEqual([has('a'), 'a "gone"', has('b'), has('c')].toSorted())
})

test('a cluster that cannot be reached at the start is waited for', async () => {
  const view = new FakeClusterView({ objects: [object('a')] })
  view.fail(new Error('connection refused'))
  const recorder = new Recorder()
  start(view, recorder)
  view.fail(undefined)
  await recorder.until(has('a'))
  expect(recorder.seen).toEqual([has('a')])
})

test('a stopped controller leaves no watch open', async () => {
  const view = new FakeClusterView({ objects: [object('a')] })
  const recorder = new Recorder()
  const stop = start(view, recorder)
  await recorder.until(has('a'))
  await stop()
  view.put(object('b'))
  expect(view.openWatches).toBe(0)
  expect(recorder.seen).toEqual([has('a')])
})

test('between keys everybody else gets a turn [SEC-R506]', async () => {
  const view = new FakeClusterView()
  const turns = new Map<number, number>()
  let turn = 0
  let ended = false
  const counting = (async () => {
    while (!ended) {
      await immediately()
      turn++
    }
  })()
  const recorder = new Recorder(() => {
    turns.set(turn, (turns.get(turn) ?? 0) + 1)
    return undefined
  })
  for (let i = 0; i < 100; i++) await view.write('create', object(`k${i}`), {}, never)
  const stop = start(view, recorder)
  await recorder.untilTrue(() => recorder.seen.length >= 100)
  ended = true
  await Promise.all([counting, stop()])
  // As many keys as there are workers may be started in one turn of the event loop.
  expect(Math.max(...turns.values())).toBeLessThanOrEqual(4)
})
