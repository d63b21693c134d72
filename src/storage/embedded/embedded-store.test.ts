import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, systemClock } from '../../core/index.ts'
import { describeStore } from '../store.suite.ts'
import { openEmbeddedStore, realSystem } from './open-store.ts'

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
