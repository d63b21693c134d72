import { createDataFile } from '../disk/data-file.ts'
import type { FileOps } from '../disk/file-ops.ts'
import { removeIfThere } from '../disk/whole-file.ts'
import { type CheckpointContent, encodeCheckpoint } from '../format/checkpoint-codec.ts'
import { type FileHeader, fileHeaderLength } from '../format/file-header.ts'

/** So that the last sync does not make the commits of that moment wait for all of the file. */
const syncEveryBytes = 8 * 1024 ** 2

/**
 * Writes a checkpoint or backup to a new file, in slices between which other work goes on. Its
 * content is on disk then, its name is not. A file that could not be finished is removed.
 */
export async function writeCheckpoint(
  files: FileOps,
  target: { readonly path: string; readonly header: FileHeader },
  content: CheckpointContent,
  signal?: AbortSignal,
): Promise<void> {
  const { file } = await createDataFile(files, target.path, target.header)
  try {
    let offset = fileHeaderLength
    let syncedUpTo = 0
    for (const batch of encodeCheckpoint(content, target.header)) {
      signal?.throwIfAborted()
      await file.write([batch], offset)
      offset += batch.length
      if (offset - syncedUpTo < syncEveryBytes) continue
      await file.sync()
      syncedUpTo = offset
    }
    await file.sync()
  } catch (error) {
    await removeIfThere(files, target.path).catch(() => {}) // the first failure is what counts
    throw error
  } finally {
    await file.close()
  }
}
