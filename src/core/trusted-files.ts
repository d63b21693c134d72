import { constants, type Stats } from 'node:fs'
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  stat,
} from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { CommandFailed, systemErrorCode } from './errors.ts'

/**
 * How far other users may have a hand in a file:
 * - `private`: in a directory of our own, with a secret. No other user may read or write it, nor
 *   any directory on the way to it.
 * - `given`: named by a flag. Only we and root may write it. Others may read it, as they can read
 *   the files of a Secret volume in a Pod, which root owns.
 */
export type FileTrust = 'private' | 'given'

const root = 0
const writableByOthers = 0o022
const accessibleByOthers = 0o077
const sticky = 0o1000

/** The user of this process; `undefined` where the system has no such numbers. */
export const ownUserId = (): number | undefined => globalThis.process.getuid?.()

/** A file or directory that other users control, or could have. */
class Untrusted extends CommandFailed {
  constructor(path: string, why: string, fix: string) {
    super('FILE_UNTRUSTED', `${path} cannot be trusted: ${why}`, { hint: fix })
  }
}

/**
 * Reads a text file whose content is trusted, after a look at the very file that is read. Throws
 * `FILE_UNTRUSTED`, or the error of the system.
 */
export async function readTrustedFile(
  path: string,
  trust: FileTrust,
  userId: number | undefined = ownUserId(),
): Promise<string> {
  const file = await (trust === 'private' ? openPrivate(path, userId) : openGiven(path, userId))
  try {
    const found = await file.stat()
    requireOwner(path, found, userId)
    requireMode(path, found, trust === 'private' ? accessibleByOthers : writableByOthers, userId)
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

/** Reads a file that a flag names; `failure` makes the error for one that cannot be read, from its code. */
export async function readGivenFile(
  path: string,
  failure: (code: string, cause: unknown) => Error,
): Promise<string> {
  try {
    return await readTrustedFile(path, 'given')
  } catch (error) {
    if (error instanceof Untrusted) throw error
    throw failure(systemErrorCode(error) ?? 'unknown error', error)
  }
}

/** As `readTrustedFile`; `undefined` if there is no such file. */
export async function readTrustedFileIfPresent(
  path: string,
  trust: FileTrust,
): Promise<string | undefined> {
  try {
    return await readTrustedFile(path, trust)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Requires that no other user but root can change what is in the directory, as sshd does: neither
 * it nor any directory above it may be another user's or writable by others. A directory above it
 * may be writable if it is sticky, as /tmp is. Returns the path without links, to be used from then on.
 */
export async function requireTrustedDirectory(
  path: string,
  userId: number | undefined = ownUserId(),
): Promise<string> {
  const real = await realpath(path)
  let at = ''
  for (const name of real === sep ? [''] : real.split(sep)) {
    at = at.endsWith(sep) ? `${at}${name}` : `${at}${sep}${name}`
    const found = await lstat(at)
    requireOwner(at, found, userId)
    const isShared = at !== real && (found.mode & sticky) !== 0
    if (!isShared) requireMode(at, found, writableByOthers, userId)
  }
  return real
}

/** Requires that no other user but root has made, or can change, what is directly in the directory. */
export async function requireTrustedEntries(
  path: string,
  userId: number | undefined = ownUserId(),
): Promise<void> {
  for (const name of await readdir(path)) {
    const entry = join(path, name)
    const found = await lstat(entry).catch(goneMeanwhile)
    if (found) requireOwner(entry, found, userId)
    const target = found?.isSymbolicLink() ? await stat(entry).catch(goneMeanwhile) : found
    if (target?.isFile() || target?.isDirectory()) {
      requireOwner(entry, target, userId)
      requireMode(entry, target, writableByOthers, userId)
    }
  }
}

/** Makes a directory for its owner only, whatever the umask, if it is not there. */
export async function makePrivateDirectory(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined) await chmod(path, 0o700)
}

function goneMeanwhile(error: unknown): undefined {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

async function openPrivate(path: string, userId: number | undefined): Promise<FileHandle> {
  const real = await realpath(path)
  await requireTrustedDirectory(dirname(real), userId)
  return open(real, constants.O_RDONLY | constants.O_NOFOLLOW)
}

/** The owner of a link decides what is read by it. Pipes (`/dev/stdin`, `<(...)`) have no path without links. */
async function openGiven(path: string, userId: number | undefined): Promise<FileHandle> {
  const found = await lstat(path)
  if (found.isSymbolicLink()) requireOwner(path, found, userId)
  return open(path, constants.O_RDONLY)
}

function requireOwner(path: string, { uid }: Stats, userId: number | undefined): void {
  if (userId === undefined || uid === userId || uid === root) return
  throw new Untrusted(
    path,
    `it belongs to another user (uid ${uid}, this process runs as uid ${userId})`,
    `check who made it, then: chown ${userId} ${path}`,
  )
}

function requireMode(
  path: string,
  { mode }: Stats,
  forbidden: number,
  userId: number | undefined,
): void {
  if (userId === undefined || (mode & forbidden) === 0) return
  const isWritable = (mode & writableByOthers) !== 0
  throw new Untrusted(
    path,
    `other users can ${isWritable ? 'write' : 'read'} it (mode ${(mode & 0o7777).toString(8).padStart(4, '0')})`,
    isWritable
      ? `check its content, then: chmod go-w ${path}`
      : `consider the key in it as known to others, then: chmod go= ${path}`,
  )
}
