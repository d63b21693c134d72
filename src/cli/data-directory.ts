import { join } from 'node:path'
import type { Io } from './io.ts'

/** The data directory: the one given, or the usual one of this user. */
export function dataDirectory(given: string | undefined, io: Io): string {
  if (given !== undefined) return given
  if (io.isRoot) return '/var/lib/sallyport'
  return join(io.env['XDG_DATA_HOME'] || join(io.homeDirectory, '.local', 'share'), 'sallyport')
}
