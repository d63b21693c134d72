import { dirname } from 'node:path'
import { CommandFailed, systemErrorCode } from '../../core/index.ts'
import { defaultHistoryLimits } from '../mirror/history.ts'
import { requireCurrentStore } from './check-store.ts'
import { explainSystemError } from './damage.ts'
import type { FileOps } from './disk/file-ops.ts'
import { nodeFiles } from './disk/node-files.ts'
import { removeIfThere } from './disk/whole-file.ts'
import { newFileHeader } from './format/file-header.ts'
import { readStore } from './read/read-store.ts'
import { writeCheckpoint } from './write/write-checkpoint.ts'

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
