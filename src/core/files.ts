import { randomBytes } from 'node:crypto'
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemErrorCode } from './errors.ts'

/** Reads a text file; `undefined` if there is none. */
export async function readFileIfPresent(path: string | URL): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Replaces a file in one step: whoever reads it sees the old content or the new one, also after a crash.
 * With `new` it fails with EEXIST if there is one. Something other than a regular file is not replaced (EINVAL).
 */
export async function replaceFile(
  path: string,
  content: string,
  mode: number,
  as: 'new' | 'any' = 'any',
): Promise<void> {
  if (as === 'any') await refuseSpecialFile(path)
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const file = await open(temporary, 'wx', mode)
    try {
      await file.chmod(mode) // the umask must not decide what is private
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    if (as === 'any') await rename(temporary, path)
    else {
      await link(temporary, path)
      await rm(temporary)
    }
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}) // the first failure is what counts
    throw error
  }
  await syncDirectory(dirname(path))
}

/** A device, pipe or socket, also behind a link, is not replaced: `/dev/null` is not a place for a key. */
async function refuseSpecialFile(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (!found || found.isFile() || found.isDirectory()) return
  throw Object.assign(new Error(`${path} is not a regular file`), { code: 'EINVAL' })
}

/** Where a directory cannot be opened like a file, there is no way to sync the names in it. */
const unopenable = new Set(['EISDIR', 'EPERM', 'EACCES'])

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r').catch((error: unknown) => {
    if (unopenable.has(systemErrorCode(error) ?? '')) return undefined
    throw error
  })
  try {
    await directory?.sync()
  } finally {
    await directory?.close()
  }
}
