import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { RevisionCompacted, type StoreEvent } from './store.ts'
import { describeKeys } from './store-keys.suite.ts'
import { runModel, storeOperations } from './store-model.suite.ts'
import { describeRanges } from './store-ranges.suite.ts'
import type { OpenForTest, StoreUnderTest, SuiteOptions } from './store-under-test.suite.ts'
import { describeWatches } from './store-watches.suite.ts'

/** The rules that every store keeps; `open` gives each test an empty one. */
export function describeStore(
  name: string,
  open: (options: SuiteOptions) => Promise<StoreUnderTest>,
): void {
  const opened: StoreUnderTest[] = []
  const openStore: OpenForTest = async (options = { historyEvents: 1000 }) => {
    const underTest = await open(options)
    opened.push(underTest)
    return underTest
  }

  afterEach(async () => {
    for (const underTest of opened.splice(0)) await underTest.dispose()
  })

  describeKeys(name, openStore)
  describeRanges(name, openStore)
  describeWatches(name, openStore)

  describe(`${name}: as a whole`, () => {
    test('what was compacted is gone, and all else goes on [SEC-R908]', async () => {
      const { store } = await openStore()
      const { revision } = await store.create('/a', Buffer.from('first'))
      await store.create('/b', Buffer.from('b'))
      await store.update('/a', Buffer.from('second'), revision)
      const events: StoreEvent[] = []
      store.watch('/', store.revision, (more) => events.push(...more))
      await Promise.all([store.compact(), store.create('/c', Buffer.from('c'))])
      await store.compact()
      expect(store.oldestRevision).toBe(store.revision)
      expect(() => store.range('/', { revision })).toThrow(RevisionCompacted)
      expect(() => store.watch('/', revision, () => {})).toThrow(RevisionCompacted)
      const values = store.range('/').runs.flat()
      expect(values.map(({ value }) => value.toString())).toEqual(['second', 'b', 'c'])
      await store.create('/d', Buffer.from('d'))
      expect(events.map(({ record }) => record.key)).toEqual(['/c', '/d'])
    })

    test('any mix of operations does what a simple model does [GND-R20] [GND-R21] [GND-R22]', async () => {
      const property = fc.asyncProperty(storeOperations, async (operations) => {
        await runModel(await openStore(), operations)
      })
      await expect(fc.assert(property, { numRuns: 40 })).resolves.toBeUndefined()
    })
  })
}
