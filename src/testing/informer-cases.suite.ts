import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createInformer, type Informer, type InformerOptions } from '../client/index.ts'
import {
  ApiError,
  type ClusterView,
  type KubeObject,
  silentLogger,
  systemClock,
  type WatchEvent,
  wellKnownKinds,
} from '../core/index.ts'
import { type ClusterAbilities, type ClusterLab, signal } from './cluster-lab.suite.ts'
import { configMap, unique } from './drafts.suite.ts'
import { testOf } from './test-of.suite.ts'

const { configMap: kind } = wellKnownKinds

/** The way to a cluster, whose watches a test can end, delay or keep silent. */
class WatchedView implements ClusterView {
  readonly #view: ClusterView
  readonly #open = new Set<AbortController>()
  lists = 0
  isSilent = false
  /** Events wait for it. */
  delay: Promise<void> = Promise.resolve()
  /** What the next watch fails with. */
  failure: Error | undefined

  constructor(view: ClusterView) {
    this.#view = view
  }

  list: ClusterView['list'] = (...request) => {
    this.lists += 1
    return this.#view.list(...request)
  }

  async *watch(...request: Parameters<ClusterView['watch']>): AsyncGenerator<WatchEvent> {
    const [watched, query, outer] = request
    const { failure } = this
    this.failure = undefined
    if (failure) throw failure
    const stop = new AbortController()
    this.#open.add(stop)
    const either = AbortSignal.any([outer, stop.signal])
    for await (const event of this.#view.watch(watched, query, either)) {
      await this.delay
      if (!this.isSilent) yield event
    }
    this.#open.delete(stop)
  }

  endWatches(): void {
    for (const stop of this.#open) stop.abort()
  }

  get: ClusterView['get'] = (...request) => this.#view.get(...request)
  write: ClusterView['write'] = (...request) => this.#view.write(...request)
  review: ClusterView['review'] = (...request) => this.#view.review(...request)
}

/** Cases of informers. */
export function describeInformers(lab: ClusterLab, abilities: ClusterAbilities): void {
  const { namespace, create, update, remove } = lab
  const backoff = { initialMs: 1, maxMs: 20 }

  /** An informer on the objects with a label of its own, and what it reports. */
  async function open(options: Partial<InformerOptions> = {}) {
    const label = unique('label')
    const view = new WatchedView(lab.view)
    const stop = new AbortController()
    const informer: Informer = createInformer({
      view,
      kind,
      query: { namespace, labelSelector: label },
      log: silentLogger,
      clock: systemClock,
      backoff,
      signal: stop.signal,
      ...options,
    })
    onTestFinished(async () => {
      stop.abort()
      await informer.ended
    })
    const seen: string[] = []
    informer.onChange(({ name, before, after }) => {
      const values = [before, after].map((object) => object && String(dataOf(object)['n']))
      seen.push(`${name} ${values[0] ?? '-'} ${values[1] ?? '-'}`)
    })
    await informer.synced
    const draft = (name: string, n: string): KubeObject =>
      configMap(namespace, name, { n }, { [label]: '' })
    const until = (lines: readonly string[]) =>
      vi.waitFor(() => expect(seen).toEqual(lines), { timeout: 10_000, interval: 5 })
    const names = () => [...informer.list(namespace)].map(({ metadata }) => metadata.name)
    return { view, informer, seen, draft, until, names }
  }

  describe('informers', () => {
    test('report every change once and in order, and cache the objects [GND-R85]', async () => {
      const { informer, draft, until, names } = await open()
      const first = await create(draft('one', '1'))
      await update({ ...first, data: { n: '2' } })
      await create(draft('two', '1'))
      await until(['one - 1', 'one 1 2', 'two - 1'])
      expect(names()).toEqual(['one', 'two'])
      expect(informer.get({ namespace, name: 'one' })).toMatchObject({ data: { n: '2' } })
      await remove(draft('one', '2'))
      await until(['one - 1', 'one 1 2', 'two - 1', 'one 2 -'])
      expect(names()).toEqual(['two'])
      await remove(draft('two', '1'))
    })

    test('resume where they were when a watch ends [GND-R85]', async () => {
      const { view, draft, until } = await open()
      const object = await create(draft('resumed', '1'))
      await until(['resumed - 1'])
      view.endWatches()
      await update({ ...object, data: { n: '2' } })
      await until(['resumed - 1', 'resumed 1 2'])
      expect(view.lists).toBe(1)
      await remove(object)
    })

    test('list again when the history is gone, and report the difference [GND-R85]', async () => {
      const { view, draft, until } = await open()
      const [kept, changed, gone] = [
        await create(draft('kept', '1')),
        await create(draft('changed', '1')),
        await create(draft('gone', '1')),
      ]
      const before = ['kept - 1', 'changed - 1', 'gone - 1']
      await until(before)
      view.failure = new ApiError('Expired', 'too old resource version')
      view.isSilent = true
      await update({ ...changed, data: { n: '2' } })
      await remove(gone)
      view.isSilent = false
      view.endWatches()
      await until([...before, 'gone 1 -', 'changed 1 2'])
      expect(view.lists).toBe(2)
      for (const object of [kept, changed]) await remove(draft(object.metadata.name, ''))
    })

    test('show own writes at once and do not report them [GND-R85]', async () => {
      const { view, informer, draft, until, names } = await open()
      let deliver = (): void => {}
      view.delay = new Promise((resolve) => {
        deliver = resolve
      })
      informer.applied(await create(draft('own', '1')))
      expect(names()).toEqual(['own'])
      deliver()
      await create(draft('other', '1'))
      await until(['other - 1'])
      for (const name of ['own', 'other']) await remove(draft(name, ''))
    })

    test('are confirmed by a list, and replaced by it when their watch is dead [GND-R85]', async () => {
      const { view, informer, draft, until, names } = await open()
      const confirmedAt = informer.confirmedAt
      expect(await informer.confirm(0, signal)).toBe(true)
      expect(informer.confirmedAt).toBeGreaterThan(confirmedAt)
      view.isSilent = true
      await create(draft('unseen', '1'))
      expect(await informer.confirm(0, signal)).toBe(true)
      expect(names()).toEqual(['unseen'])
      await until(['unseen - 1'])
      await remove(draft('unseen', ''))
    })

    const { expiredVersion } = abilities
    testOf(expiredVersion)('survive a real expiry of their version [GND-R85]', async () => {
      const { view, draft, until } = await open()
      const object = await create(draft('survivor', '1'))
      await until(['survivor - 1'])
      view.isSilent = true
      await expiredVersion!(lab.view)
      view.isSilent = false
      view.endWatches()
      await update({ ...object, data: { n: '2' } })
      await until(['survivor - 1', 'survivor 1 2'])
      await remove(draft('survivor', ''))
    })
  })
}

const dataOf = (object: KubeObject): Record<string, unknown> =>
  object['data'] as Record<string, unknown>
