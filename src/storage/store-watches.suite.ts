import { describe, expect, test } from 'vitest'
import {
  KeyExists,
  RevisionCompacted,
  RevisionMismatch,
  type Store,
  type StoreEvent,
} from './store.ts'
import { bytes, inWords, type OpenForTest } from './store-under-test.suite.ts'

function collect(store: Store, prefix: string, after: number) {
  const events: StoreEvent[] = []
  const subscription = store.watch(prefix, after, (more) => events.push(...more))
  return { events, close: () => subscription.close(), texts: () => events.map(inWords) }
}

/** Rules for watches. */
export function describeWatches(name: string, openStore: OpenForTest): void {
  const freshStore = async (): Promise<Store> => (await openStore()).store

  describe(`${name}: watches`, () => {
    test('a watch from now on delivers each later change of its prefix, in order [GND-R22]', async () => {
      const store = await freshStore()
      await store.create('/w/old', bytes('0'))
      const watch = collect(store, '/w/', store.revision)
      const { revision } = await store.create('/w/a', bytes('1'))
      await store.create('/x/a', bytes('1'))
      const updated = await store.update('/w/a', bytes('2'), revision)
      await store.delete('/w/a', updated.revision)
      expect(watch.texts()).toEqual(['put /w/a=1', 'put /w/a=2 (was 1)', 'delete /w/a=2 (was 2)'])
    })

    test('a watch from an earlier revision first delivers what came since [GND-R22]', async () => {
      const store = await freshStore()
      const { revision } = await store.create('/w/a', bytes('1'))
      await store.update('/w/a', bytes('2'), revision)
      const watch = collect(store, '/w/', revision)
      expect(watch.texts()).toEqual(['put /w/a=2 (was 1)'])
      await store.create('/w/b', bytes('1'))
      expect(watch.texts()).toEqual(['put /w/a=2 (was 1)', 'put /w/b=1'])
    })

    test('a watch that is resumed again and again misses and doubles nothing [GND-R22]', async () => {
      const store = await freshStore()
      const start = store.revision
      const whole = collect(store, '/w/', start)
      const seen: StoreEvent[] = []
      const writer = async (id: number): Promise<void> => {
        for (let i = 0; i < 30; i++) await store.create(`/w/${id}-${i}`, bytes('v'))
      }
      const writers = Promise.all([1, 2, 3, 4].map(writer))
      const reader = async (): Promise<void> => {
        while (seen.length < 120) {
          const watch = collect(store, '/w/', seen.at(-1)?.record.revision ?? start)
          await new Promise((resolve) => setImmediate(resolve))
          watch.close()
          seen.push(...watch.events)
        }
      }
      await Promise.all([writers, reader()])
      expect(seen.map(inWords)).toEqual(whole.texts())
      const revisions = seen.map((event) => event.record.revision)
      expect(revisions).toEqual(revisions.toSorted((a, b) => a - b))
    })

    test('an event comes before its writer is answered, and reads show it by then', async () => {
      const store = await freshStore()
      const order: string[] = []
      store.watch('/w/', store.revision, ([event]) => {
        order.push(`event, reads ${store.get('/w/a')?.value.toString()}`)
        expect(store.revision).toBeGreaterThanOrEqual(event?.record.revision ?? 0)
      })
      await store.create('/w/a', bytes('1')).then(() => order.push('answer'))
      expect(order).toEqual(['event, reads 1', 'answer'])
    })

    test('a refused write makes no event', async () => {
      const store = await freshStore()
      await store.create('/w/a', bytes('1'))
      const watch = collect(store, '/w/', store.revision)
      await expect(store.create('/w/a', bytes('2'))).rejects.toThrow(KeyExists)
      await expect(store.delete('/w/a', 1)).rejects.toThrow(RevisionMismatch)
      expect(watch.texts()).toEqual([])
    })

    test('a closed watch is silent, others go on', async () => {
      const store = await freshStore()
      const closed = collect(store, '/w/', store.revision)
      const open = collect(store, '/w/', store.revision)
      closed.close()
      closed.close()
      await store.create('/w/a', bytes('1'))
      expect(closed.texts()).toEqual([])
      expect(open.texts()).toEqual(['put /w/a=1'])
    })

    test('watchers of one prefix share one array of events', async () => {
      const store = await freshStore()
      const arrays: (readonly StoreEvent[])[] = []
      for (let i = 0; i < 3; i++)
        store.watch('/w/', store.revision, (events) => arrays.push(events))
      await store.create('/w/a', bytes('1'))
      expect(arrays).toHaveLength(3)
      expect(new Set(arrays).size).toBe(1)
    })

    test('a sink that opens and closes watches while it is called gets each event once', async () => {
      const store = await freshStore()
      const start = store.revision
      const inner: StoreEvent[] = []
      const outer = store.watch('/w/', start, () => {
        outer.close()
        store.watch('/w/', start, (events) => inner.push(...events))
      })
      await store.create('/w/a', bytes('1'))
      await store.create('/w/b', bytes('1'))
      expect(inner.map(inWords)).toEqual(['put /w/a=1', 'put /w/b=1'])
    })

    test('a revision before the kept history is refused as compacted [GND-R23]', async () => {
      const { store } = await openStore({ historyEvents: 20 })
      const old = store.revision
      for (let i = 0; i < 200; i++) await store.create(`/h/${i}`, bytes('v'))
      expect(store.oldestRevision).toBeGreaterThan(old)
      expect(() => store.range('/h/', { revision: old })).toThrow(RevisionCompacted)
      expect(() => store.watch('/h/', old, () => {})).toThrow(RevisionCompacted)
      const oldest = store.oldestRevision
      const kept = collect(store, '/h/', oldest).events
      expect(kept.length).toBeGreaterThanOrEqual(20)
      expect(store.range('/h/', { revision: oldest }).runs.flat()).toHaveLength(200 - kept.length)
    })
  })
}
