import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { describeStore } from '../store.suite.ts'
import { RevisionCompacted, StoreWriteFailed } from '../store.ts'
import { openEmbeddedStore, realSystem } from './open-store.ts'
import { SimulatedDisk } from './simulated-disk.suite.ts'

const never = (): boolean => false
const always = (): boolean => true

for (const [name, checkpointRule] of [
  ['embedded store', never],
  ['embedded store with a checkpoint whenever one can begin', always],
] as const) {
  describeStore(name, async ({ historyEvents }) => {
    const directory = await mkdtemp(join(tmpdir(), 'sallyport-store-'))
    const history = { maxEvents: historyEvents, maxBytes: 2 ** 30 }
    const options = { directory, clock: systemClock, log: silentLogger, history }
    let store = await openEmbeddedStore(options, { ...realSystem, checkpointRule })
    return {
      store,
      reopen: async () => {
        await store.close()
        store = await openEmbeddedStore(options, { ...realSystem, checkpointRule })
        return store
      },
      dispose: async () => {
        await store.close()
        await rm(directory, { recursive: true })
      },
    }
  })
}

test('a compacted store has no earlier value in any file, before and after a restart [SEC-R908]', async () => {
  const disk = new SimulatedDisk()
  const options = { directory: '/data/store', clock: systemClock, log: silentLogger }
  const system = { ...realSystem, files: disk, checkpointRule: () => false }
  const store = await openEmbeddedStore(options, system)
  const { revision } = await store.create('/replaced', Buffer.from('gone one'))
  await store.update('/replaced', Buffer.from('kept'), revision)
  const deleted = await store.create('/deleted', Buffer.from('gone two'))
  await store.delete('/deleted', deleted.revision)
  const holders = () => disk.paths().filter((path) => disk.content(path).includes('gone'))
  expect(holders()).not.toEqual([])
  await store.compact()
  expect(holders()).toEqual([])
  const again = await openEmbeddedStore(options, { ...system, files: disk.afterKill() })
  expect(again.get('/replaced')?.value.toString()).toBe('kept')
  expect(() => again.watch('', deleted.revision, () => {})).toThrow(RevisionCompacted)
  expect(again.oldestRevision).toBe(again.revision)
})

test('a compaction that fails is reported, and the store goes on [SEC-R908]', async () => {
  const disk = new SimulatedDisk()
  const options = { directory: '/data/store', clock: systemClock, log: silentLogger }
  const store = await openEmbeddedStore(options, { ...realSystem, files: disk })
  await store.create('/a', Buffer.from('a'))
  disk.fault = ({ path }) => (path.includes('checkpoint-') ? 'ENOSPC' : undefined)
  await expect(store.compact()).rejects.toThrow(StoreWriteFailed)
  await store.create('/b', Buffer.from('b'))
  expect(store.get('/b')?.value.toString()).toBe('b')
})
