import { systemErrorCode } from '../../../core/index.ts'
import type { FileOps } from './file-ops.ts'

/** The content of a small file. */
export async function readWholeFile(files: FileOps, path: string): Promise<Buffer> {
  const file = await files.open(path, 'read')
  try {
    const bytes = Buffer.alloc(await file.size())
    return bytes.subarray(0, await file.read(bytes, 0))
  } finally {
    await file.close()
  }
}

/** Makes a file with this content on disk, in place of one that may be there. Its name is not synced. */
export async function writeWholeFile(files: FileOps, path: string, bytes: Buffer): Promise<void> {
  await removeIfThere(files, path)
  const file = await files.open(path, 'create')
  try {
    await file.write([bytes], 0)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Removes a file; none there is fine. */
export async function removeIfThere(files: FileOps, path: string): Promise<void> {
  try {
    await files.remove(path)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}
