import type { Logger } from '../../../core/index.ts'
import type { FileOps } from '../disk/file-ops.ts'
import type { StoreContent } from '../read/read-store.ts'

/**
 * Puts the end of the journal in order before it is served or written to: what a crash tore off is
 * cut away, and a last commit that is not known to be on disk is put there.
 */
export async function repairTail(
  files: FileOps,
  { active, syncedOffset }: StoreContent,
  log: Logger,
): Promise<void> {
  const unproven = active.lastBatch !== undefined && active.offset > syncedOffset
  if (!active.torn && !unproven) return
  const file = await files.open(active.path, 'edit')
  try {
    if (active.torn) {
      const removed = (await file.size()) - active.offset
      log.warn(
        { file: active.path, offset: active.offset, bytes: removed },
        'the journal ends in a commit that was cut short and never acknowledged; it is removed',
      )
      await file.truncate(active.offset)
    }
    if (unproven && active.lastBatch !== undefined) {
      // Read and written again: after a failed sync a system takes its pages for written, and
      // another sync alone would do nothing.
      const batch = Buffer.alloc(active.offset - active.lastBatch)
      await file.read(batch, active.lastBatch)
      await file.write([batch], active.lastBatch)
    }
    await file.sync()
  } finally {
    await file.close()
  }
}
