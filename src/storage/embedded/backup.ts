import { dirname, join } from 'node:path'
import { CommandFailed, systemErrorCode } from '../../core/index.ts'
import { defaultHistoryLimits } from '../mvcc/history.ts'
import { StoreDamaged, type StoredRecord } from '../store.ts'
import { requireCurrentStore } from './check.ts'
import { type CheckpointState, readCheckpoint, writeCheckpoint } from './checkpoint.ts'
import { explainSystemError, writeFailure } from './damage.ts'
import { checkpointName, newFileHeader } from './file-format.ts'
import { type FileOps, nodeFiles, openDataFile, removeIfThere } from './file-system.ts'
import { type Manifest, writeManifest } from './manifest.ts'
import { namesIn, unusedSegment } from './prepare-directory.ts'
import { readStore } from './read-store.ts'
import { SegmentWriter } from './segment-writer.ts'
import { type SyncedPlace, writeMarker } from './synced-marker.ts'

/** What a backup holds or a restore has brought back. */
export interface BackupSummary {
  readonly revision: number
  readonly records: number
}

/**
 * Copies all records at one revision into one new file with checksums. Only reads the store; a
 * server may be using it. Throws `RecordDamaged` rather than leave a damaged record out.
 */
export async function backupStore(
  directory: string,
  file: string,
  files: FileOps = nodeFiles,
): Promise<BackupSummary> {
  await requireCurrentStore(files, directory)
  const { mirror } = await readStore({
    files,
    directory,
    limits: defaultHistoryLimits,
    onSinkFailure: () => {},
    onLostValue: () => {},
  })
  const { runs, revision } = mirror.range('')
  const header = newFileHeader({ kind: 'backup', sequence: 0, revision, floor: revision })
  try {
    await claim(files, file)
    await writeInPlaceOf(files, file, (path) => {
      return writeCheckpoint(files, { path, header }, { runs, events: [], isLost: () => false })
    })
  } catch (error) {
    throw backupFailure(file, error)
  }
  return { revision, records: mirror.size }
}

/** An empty file of the final name, which only one can make: nothing is ever overwritten. */
async function claim(files: FileOps, file: string): Promise<void> {
  await (await files.open(file, 'create')).close()
}

/** Under another name until it is whole, and gone if it never is. */
async function writeInPlaceOf(
  files: FileOps,
  file: string,
  write: (path: string) => Promise<void>,
): Promise<void> {
  const partial = `${file}.partial`
  try {
    await removeIfThere(files, partial) // of an earlier try: the claim is ours
    await write(partial)
    await files.rename(partial, file)
    await files.syncDirectory(dirname(file))
  } catch (error) {
    await removeIfThere(files, partial).catch(() => {}) // the first failure is what counts
    await removeIfThere(files, file).catch(() => {})
    throw error
  }
}

function backupFailure(file: string, error: unknown): CommandFailed {
  const code = systemErrorCode(error)
  if (code === 'EEXIST') {
    const message = `${file} is there already and is not overwritten`
    return new CommandFailed('BACKUP_FILE_EXISTS', message, { hint: 'choose another name' })
  }
  const message = `cannot write the backup ${file}: ${explainSystemError(error)}`
  return new CommandFailed('BACKUP_FAILED', message, { cause: error })
}

/**
 * Clients remember revisions that the lost store gave out after what is left of it. If the
 * restored or repaired store gave out the same numbers for other changes, a watch resumed from one would miss
 * changes without anybody noticing. So it goes on far above them, and with no history before that:
 * every revision from before the restore is answered as compacted, and clients list again.
 */
export const revisionGap = 1_000_000

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
    const position = { sequence: 1, revision }
    const written = await writeContent(files, directory, state.records, position)
    await writeMarker(files, directory, written.place, { closed: true })
    await files.syncDirectory(directory)
    // Last, so that an unfinished restore is no store.
    await writeManifest(files, directory, written.manifest)
  } catch (error) {
    throw writeFailure(directory, error, 'nothing was restored; empty the directory and try again')
  }
  return { revision, records: state.records.length }
}

/** Writes the files of a store without history; it is one when marker and manifest name them. */
export async function writeContent(
  files: FileOps,
  directory: string,
  records: readonly StoredRecord[],
  { sequence, revision }: { readonly sequence: number; readonly revision: number },
): Promise<{ readonly manifest: Manifest; readonly place: SyncedPlace }> {
  const position = { sequence, revision, floor: revision }
  const header = newFileHeader({ kind: 'checkpoint', ...position })
  const path = join(directory, checkpointName(sequence))
  const content = { runs: [records], events: [], isLost: () => false }
  await writeCheckpoint(files, { path, header }, content)
  const segment = newFileHeader({ kind: 'segment', ...position })
  await (await SegmentWriter.create(files, directory, segment)).close()
  return {
    manifest: { checkpoint: sequence, segments: [sequence] },
    place: unusedSegment(segment),
  }
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
