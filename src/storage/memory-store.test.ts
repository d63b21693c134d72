import { openMemoryStore } from './local-store.ts'
import { describeStore } from './store.suite.ts'

describeStore('memory store', async ({ historyEvents }) => {
  const store = openMemoryStore({ history: { maxEvents: historyEvents, maxBytes: 2 ** 30 } })
  return { store, dispose: () => store.close() }
})
