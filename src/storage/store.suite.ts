import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import {
  KeyExists,
  type Range,
  RevisionCompacted,
  RevisionMismatch,
  RevisionUnknown,
  type Store,
  type StoredRecord,
  type StoreEvent,
  StoreWriteFailed,
} from './contract.ts'
import { runModel, storeOperations } from './store-model.suite.ts'

/** A store for one test. */
export interface StoreUnderTest {
  readonly store: Store
  /** Ends the store and opens it again on the same data; absent when it keeps none. */
  readonly reopen?: () => Promise<Store>
  readonly dispose: () => Promise<void>
}

/** How the store of one test is opened. */
export interface SuiteOptions {
  /** History must reach back for so many events at least, and must not for ten times as many. */
  readonly historyEvents: number
}

const bytes = (text: string): Buffer => Buffer.from(text)
const textsOf = (range: Range): string[] =>
  range.runs.flat().map((record) => `${record.key}=${record.value.toString()}`)

/** `put a=1 (was 0)`: an event in words. */
function inWords({ type, record, previous }: StoreEvent): string {
  const was = previous ? ` (was ${previous.value.toString()})` : ''
  return `${type} ${record.key}=${record.value.toString()}${was}`
}

function collect(store: Store, prefix: string, after: number) {
  const events: StoreEvent[] = []
  const subscription = store.watch(prefix, after, (more) => events.push(...more))
  return { events, close: () => subscription.close(), texts: () => events.map(inWords) }
}

/** The rules that every store keeps; `open` gives each test an empty one. */
export function describeStore(
  name: string,
  open: (options: SuiteOptions) => Promise<StoreUnderTest>,
): void {
  const opened: StoreUnderTest[] = []
  const openStore = async (options: SuiteOptions = { historyEvents: 1000 }) => {
    const underTest = await open(options)
    opened.push(underTest)
    return underTest
  }
  const freshStore = async (): Promise<Store> => (await openStore()).store

  afterEach(async () => {
    for (const underTest of opened.splice(0)) await underTest.dispose()
  })

  describe(`${name}: single keys`, () => {
    test('a created key is read back with the revision of its creation [GND-R20]', async () => {
      const store = await freshStore()
      const before = store.revision
      const created = await store.create('/a', bytes('one'))
      expect(created.revision).toBeGreaterThan(before)
      expect(store.revision).toBeGreaterThanOrEqual(created.revision)
      expect(store.get('/a')).toEqual({
        key: '/a',
        value: bytes('one'),
        revision: created.revision,
      })
    })

    test('an empty store has a revision above 0, as 0 means "any" to clients', async () => {
      const store = await freshStore()
      expect(store.revision).toBeGreaterThan(0)
    })

    test('a key that was never made, or is deleted, is not there', async () => {
      const store = await freshStore()
      const { revision } = await store.create('/a', bytes('one'))
      await store.delete('/a', revision)
      expect(store.get('/a')).toBeUndefined()
      expect(store.get('/b')).toBeUndefined()
    })

    test('creating a key that is there is refused and changes nothing [GND-R20]', async () => {
      const store = await freshStore()
      const created = await store.create('/a', bytes('one'))
      await expect(store.create('/a', bytes('two'))).rejects.toThrow(KeyExists)
      expect(store.get('/a')).toEqual(created)
    })

    test('an update at the right revision gets a later one [GND-R20]', async () => {
      const store = await freshStore()
      const created = await store.create('/a', bytes('one'))
      const updated = await store.update('/a', bytes('two'), created.revision)
      expect(updated.revision).toBeGreaterThan(created.revision)
      expect(store.get('/a')).toEqual(updated)
    })

    test.each<[string, (store: Store, stale: number) => Promise<unknown>]>([
      ['update', (store, stale) => store.update('/a', bytes('x'), stale)],
      ['delete', (store, stale) => store.delete('/a', stale)],
    ])(
      'a stale %s is refused, shows what is there, changes nothing [GND-R20]',
      async (_, write) => {
        const store = await freshStore()
        const { revision } = await store.create('/a', bytes('one'))
        const current = await store.update('/a', bytes('two'), revision)
        await expect(write(store, revision)).rejects.toThrow(RevisionMismatch)
        await expect(write(store, revision)).rejects.toMatchObject({ current })
        expect(store.get('/a')).toEqual(current)
      },
    )

    test.each<[string, (store: Store) => Promise<unknown>]>([
      ['update', (store) => store.update('/a', bytes('x'), 1)],
      ['delete', (store) => store.delete('/a', 1)],
    ])('a %s of a key that is not there is refused', async (_, write) => {
      const store = await freshStore()
      await expect(write(store)).rejects.toThrow(RevisionMismatch)
      await expect(write(store)).rejects.toMatchObject({ current: undefined })
    })

    test('a key made again after its deletion has a revision of its own', async () => {
      const store = await freshStore()
      const first = await store.create('/a', bytes('one'))
      const deletedAt = await store.delete('/a', first.revision)
      const again = await store.create('/a', bytes('one'))
      expect(deletedAt).toBeGreaterThan(first.revision)
      expect(again.revision).toBeGreaterThan(deletedAt)
    })

    test.each([
      ['empty', Buffer.alloc(0)],
      ['binary', Buffer.from([0, 255, 10, 13, 128])],
      ['large', Buffer.alloc(1_500_000, 'x')],
    ])('a value that is %s comes back as it was', async (_, value) => {
      const store = await freshStore()
      await store.create('/a', value)
      expect(store.get('/a')?.value.equals(value)).toBe(true)
    })

    test('of many creations of one key exactly one wins', async () => {
      const store = await freshStore()
      const attempts = Array.from({ length: 500 }, (_, i) => store.create('/a', bytes(String(i))))
      const outcomes = await Promise.allSettled(attempts)
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const refusals = outcomes.filter((outcome) => outcome.status === 'rejected')
      expect(refusals.every(({ reason }) => reason instanceof KeyExists)).toBe(true)
    })

    test('writers that compare and swap lose no update', async () => {
      const store = await freshStore()
      await store.create('/count', bytes('0'))
      const increment = async (): Promise<void> => {
        const held = store.get('/count') as StoredRecord
        const next = bytes(String(Number(held.value.toString()) + 1))
        try {
          await store.update('/count', next, held.revision)
        } catch (error) {
          if (!(error instanceof RevisionMismatch)) throw error
          await store.freshen(AbortSignal.timeout(5000))
          await increment()
        }
      }
      await Promise.all(Array.from({ length: 24 }, increment))
      expect(store.get('/count')?.value.toString()).toBe('24')
    })

    test('freshen reaches every write acknowledged before it', async () => {
      const store = await freshStore()
      const { revision } = await store.create('/a', bytes('one'))
      expect(await store.freshen(AbortSignal.timeout(5000))).toBeGreaterThanOrEqual(revision)
    })

    test('a closed store refuses writes', async () => {
      const store = await freshStore()
      await store.close()
      await expect(store.create('/a', bytes('one'))).rejects.toThrow(StoreWriteFailed)
    })

    test('closing waits for the writes under way', async () => {
      const store = await freshStore()
      const write = store.create('/a', bytes('one'))
      await store.close()
      expect(await write).toMatchObject({ key: '/a' })
    })
  })

  describe(`${name}: ranges`, () => {
    const keys = [
      '/a',
      '/a/1',
      '/a/2',
      '/a/3',
      '/a0',
      '/ab',
      '/b/1',
      '/b/\uffff',
      '/b/\uffffx',
      '/c',
    ]
    const filledStore = async (): Promise<Store> => {
      const store = await freshStore()
      for (const key of keys.toReversed()) await store.create(key, bytes('v'))
      return store
    }
    const keysOf = (range: Range): string[] => range.runs.flat().map((record) => record.key)

    test.each([
      ['', keys],
      ['/a', ['/a', '/a/1', '/a/2', '/a/3', '/a0', '/ab']],
      ['/a/', ['/a/1', '/a/2', '/a/3']],
      ['/b/\uffff', ['/b/\uffff', '/b/\uffffx']],
      ['/b/\ufffe', []],
      ['/c', ['/c']],
      ['/d', []],
    ])('prefix %j has the keys that start with it, in order', async (prefix, expected) => {
      expect(keysOf((await filledStore()).range(prefix))).toEqual(expected)
    })

    test.each([
      [{ after: '/a/1' }, ['/a/2', '/a/3'], 0],
      [{ after: '/a/11' }, ['/a/2', '/a/3'], 0],
      [{ after: '/a/3' }, [], 0],
      [{ after: '' }, ['/a/1', '/a/2', '/a/3'], 0],
      [{ limit: 2 }, ['/a/1', '/a/2'], 1],
      [{ limit: 3 }, ['/a/1', '/a/2', '/a/3'], 0],
      [{ limit: 9 }, ['/a/1', '/a/2', '/a/3'], 0],
      [{ limit: 1, after: '/a/1' }, ['/a/2'], 1],
    ])('options %j select %j and leave out %i', async (options, expected, remaining) => {
      const range = (await filledStore()).range('/a/', options)
      expect(keysOf(range)).toEqual(expected)
      expect(range.remaining).toBe(remaining)
    })

    test('a range stays as it was while the store changes', async () => {
      const store = await filledStore()
      const range = store.range('/a/')
      const before = textsOf(range)
      await store.update('/a/1', bytes('new'), store.get('/a/1')?.revision ?? 0)
      await store.delete('/a/2', store.get('/a/2')?.revision ?? 0)
      await store.create('/a/0', bytes('new'))
      expect(textsOf(range)).toEqual(before)
    })

    test('pages show one revision however the store changes between them [GND-R21]', async () => {
      const store = await freshStore()
      for (let i = 100; i < 400; i++) await store.create(`/p/${i}`, bytes('v'))
      const first = store.range('/p/', { limit: 70 })
      const expected = textsOf(store.range('/p/'))
      const pages = textsOf(first)
      let remaining = first.remaining
      while (remaining > 0) {
        const after = (pages.at(-1) ?? '').split('=')[0] ?? ''
        const next = Number(after.slice(3)) + 1
        await store.delete(`/p/${next}`, store.get(`/p/${next}`)?.revision ?? 0)
        await store.update('/p/399', bytes('new'), store.get('/p/399')?.revision ?? 0)
        await store.create(`/p/${next}x`, bytes('new'))
        const page = store.range('/p/', { limit: 70, after, revision: first.revision })
        expect(page.revision).toBe(first.revision)
        pages.push(...textsOf(page))
        remaining = page.remaining
        expect(pages.length + remaining).toBe(300)
      }
      expect(pages).toEqual(expected)
    })

    test('runs without a change stay the very same arrays', async () => {
      const store = await freshStore()
      const creations = Array.from({ length: 2000 }, (_, i) => store.create(`/r/${i}`, bytes('v')))
      await Promise.all(creations)
      const before = store.range('/r/').runs
      await store.update('/r/1000', bytes('new'), store.get('/r/1000')?.revision ?? 0)
      const after = new Set(store.range('/r/').runs)
      expect(before.length).toBeGreaterThan(5)
      expect(before.filter((run) => !after.has(run))).toHaveLength(1)
    })

    test('a revision that has not happened yet is refused', async () => {
      const store = await filledStore()
      const revision = store.revision + 1000
      expect(() => store.range('/a', { revision })).toThrow(RevisionUnknown)
      expect(() => store.watch('/a', revision, () => {})).toThrow(RevisionUnknown)
    })
  })

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

  describe(`${name}: as a whole`, () => {
    test('any mix of operations does what a simple model does [GND-R20] [GND-R21] [GND-R22]', async () => {
      const property = fc.asyncProperty(storeOperations, async (operations) => {
        await runModel(await openStore(), operations)
      })
      await expect(fc.assert(property, { numRuns: 40 })).resolves.toBeUndefined()
    })
  })
}
