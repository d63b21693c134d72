import { constants } from 'node:fs'
import { lstat, mkdir, open } from 'node:fs/promises'
import { ownUserId, systemErrorCode } from '../../core/index.ts'

/** Makes a directory that only its owner can use; says why an existing one must not be used. */
export async function openPrivateDirectory(path: string): Promise<string | undefined> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 })
    const found = await lstat(path)
    if (!found.isDirectory()) return `${path} is not a directory itself`
    return problemOfOwner(path, found)
  } catch (error) {
    return `${path} cannot be used (${systemErrorCode(error) ?? 'unknown error'})`
  }
}

/** The text of a file that only its owner can read; or why it is not used. Nothing at all if there is none. */
export async function readPrivateFile(
  path: string,
): Promise<{ readonly text: string } | { readonly problem: string } | undefined> {
  try {
    // The file that was checked is the file that is read, and a link leads nowhere.
    const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
    try {
      const found = await file.stat()
      const problem = found.isFile() ? problemOfOwner(path, found) : `${path} is not a file`
      return problem === undefined ? { text: await file.readFile('utf8') } : { problem }
    } finally {
      await file.close()
    }
  } catch (error) {
    const code = systemErrorCode(error) ?? 'unknown error'
    return code === 'ENOENT' ? undefined : { problem: `${path} cannot be read (${code})` }
  }
}

function problemOfOwner(
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
): string | undefined {
  const self = ownUserId()
  if (self === undefined) return undefined // Windows: the user's own folders are private by their place
  if (uid !== self) return `${path} belongs to another user`
  if ((mode & 0o077) === 0) return undefined
  return `${path} is open to other users (mode ${(mode & 0o777).toString(8)}): make it private with chmod go=`
}
