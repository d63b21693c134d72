import { join } from 'node:path'
import { type DataDirectory, dataDirectoryAt } from '../server/data-directory/index.ts'
import type { Io } from './io.ts'

/** The path of the data directory: the one given, or the usual one of this user. */
export function dataDirectoryPath(given: string | undefined, io: Io): string {
  if (given !== undefined) return given
  if (io.isRoot) return '/var/lib/sallyport'
  return join(io.env['XDG_DATA_HOME'] || join(io.homeDirectory, '.local', 'share'), 'sallyport')
}

/** The data directory and where its parts lie. */
export const dataDirectory = (given: string | undefined, io: Io): DataDirectory =>
  dataDirectoryAt(dataDirectoryPath(given, io))
