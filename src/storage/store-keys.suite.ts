import { describe, expect, test } from 'vitest'
import {
  KeyExists,
  RevisionMismatch,
  type Store,
  type StoredRecord,
  StoreWriteFailed,
} from './store.ts'
import { bytes, type OpenForTest } from './store-under-test.suite.ts'

/** Rules for single keys. */
export function describeKeys(name: string, openStore: OpenForTest): void {
  const freshStore = async (): Promise<Store> => (await openStore()).store

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

    test.each([
      ['is empty', ''],
      ['is too long', 'x'.repeat(70_000)],
      ['is not well-formed text', '/a\ud800'],
    ])('a key that %s is refused', async (_, key) => {
      const store = await freshStore()
      await expect(store.create(key, bytes('one'))).rejects.toThrow(TypeError)
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
}
