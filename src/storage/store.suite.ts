import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
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
    test('any mix of operations does what a simple model does [GND-R20] [GND-R21] [GND-R22]', async () => {
      const property = fc.asyncProperty(storeOperations, async (operations) => {
        await runModel(await openStore(), operations)
      })
      await expect(fc.assert(property, { numRuns: 40 })).resolves.toBeUndefined()
    })
  })
}
