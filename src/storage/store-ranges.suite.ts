import { describe, expect, test } from 'vitest'
import { type Range, RevisionUnknown, type Store } from './store.ts'
import { bytes, type OpenForTest } from './store-under-test.suite.ts'

const textsOf = (range: Range): string[] =>
  range.runs.flat().map((record) => `${record.key}=${record.value.toString()}`)

/** Rules for ranges. */
export function describeRanges(name: string, openStore: OpenForTest): void {
  const freshStore = async (): Promise<Store> => (await openStore()).store

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
}
