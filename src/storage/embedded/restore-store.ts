import { join } from 'node:path'
import { CommandFailed } from '../../core/index.ts'
import { StoreDamaged, type StoredRecord } from '../contract.ts'
import type { BackupSummary } from './backup-store.ts'
import { writeFailure } from './damage.ts'
import { openDataFile } from './disk/data-file.ts'
import type { FileOps } from './disk/file-ops.ts'
import { writeManifest } from './disk/manifest.ts'
import { nodeFiles } from './disk/node-files.ts'
import { newFileHeader } from './format/file-header.ts'
import { checkpointName } from './format/names.ts'
import { namesIn } from './prepare-directory.ts'
import { type CheckpointState, readCheckpoint } from './read/read-checkpoint.ts'
import { SegmentWriter } from './write/segment-writer.ts'
import { writeCheckpoint } from './write/write-checkpoint.ts'

/**
 * Clients remember revisions that the lost store gave out after the backup was made. If the
 * restored store gave out the same numbers for other changes, a watch resumed from one would miss
 * changes without anybody noticing. So it goes on far above them, and with no history before that:
 * every revision from before the restore is answered as compacted, and clients list again.
 */
const revisionGap = 1_000_000

/** Makes a store from a backup, in a directory that is empty or not there. */
export async function restoreStore(
  file: string,
  directory: string,
  files: FileOps = nodeFiles,
): Promise<BackupSummary> {
  const { revision: saved, state } = await readBackup(file, files)
  await files.makeDirectory(directory)
  const [present] = await namesIn(files, directory)
  if (present !== undefined) {
    throw new CommandFailed(
      'RESTORE_TARGET_NOT_EMPTY',
      `${directory} is not empty (${present}); a backup is only restored into an empty directory`,
      { hint: 'move the old store away first' },
    )
  }
  const revision = saved + revisionGap
  try {
    await writeStore(files, directory, state.records, revision)
  } catch (error) {
    throw writeFailure(directory, error, 'nothing was restored; empty the directory and try again')
  }
  return { revision, records: state.records.length }
}

async function writeStore(
  files: FileOps,
  directory: string,
  records: readonly StoredRecord[],
  revision: number,
): Promise<void> {
  const position = { sequence: 1, revision, floor: revision }
  const header = newFileHeader({ kind: 'checkpoint', ...position })
  const path = join(directory, checkpointName(1))
  const content = { runs: [records], events: [], isLost: () => false }
  await writeCheckpoint(files, { path, header }, content)
  const segment = newFileHeader({ kind: 'segment', ...position })
  await (await SegmentWriter.create(files, directory, segment)).close()
  // Last, so that an unfinished restore is no store.
  await writeManifest(files, directory, { checkpoint: 1, segments: [1] })
}

async function readBackup(
  path: string,
  files: FileOps,
): Promise<{ readonly revision: number; readonly state: CheckpointState }> {
  try {
    const source = await openDataFile(files, path, 'backup')
    try {
      const state = await readCheckpoint(source)
      const [lost] = state.lost
      if (lost) {
        const what = `the value of ${lost.record.key} fails its checksum`
        throw new StoreDamaged(what, { file: path, offset: lost.offset })
      }
      return { revision: source.header.revision, state }
    } finally {
      await source.file.close()
    }
  } catch (error) {
    if (error instanceof StoreDamaged) throw unusable(error)
    throw error
  }
}

function unusable({ file, offset, what }: StoreDamaged): StoreDamaged {
  return new StoreDamaged(
    `the backup ${file} cannot be used: byte ${offset}: ${what}; take another backup`,
    { file, offset, what },
  )
}
