export * from './contract.ts'
export type { HistoryLimits } from './history.ts'
export { openMemoryStore } from './memory-store.ts'
