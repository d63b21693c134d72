export { acquireDirectoryLock, type DirectoryLock, type LockOwner } from './directory-lock.ts'
export { type BackupSummary, backupStore, restoreStore } from './embedded/backup.ts'
export { checkStore, type StoreProblem, type StoreReport } from './embedded/check.ts'
export type { EmbeddedStore } from './embedded/open-store.ts'
export {
  type EmbeddedStoreOptions,
  openEmbeddedStore,
} from './embedded/open-store.ts'
export { type RepairPlan, repairStore } from './embedded/repair.ts'
export { openMemoryStore } from './local-store.ts'
export type { HistoryLimits } from './mvcc/history.ts'
export { hasSealedValues, SealedStore, sealedPrefix } from './sealed-store.ts'
export * from './store.ts'
