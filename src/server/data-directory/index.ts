export { type DataDirectory, dataDirectoryAt } from './layout.ts'
export { openDataDirectory } from './open-data-directory.ts'
