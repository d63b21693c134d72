export * from './contract.ts'
export { acquireDirectoryLock, type DirectoryLock, type LockOwner } from './directory-lock.ts'
export { type BackupSummary, backupStore } from './embedded/backup-store.ts'
export { checkStore, type StoreProblem, type StoreReport } from './embedded/check-store.ts'
export type { EmbeddedStore } from './embedded/embedded-store.ts'
export {
  type EmbeddedStoreOptions,
  openEmbeddedStore,
} from './embedded/open-embedded-store.ts'
export { restoreStore } from './embedded/restore-store.ts'
export { openMemoryStore } from './memory-store.ts'
export type { HistoryLimits } from './mirror/history.ts'
