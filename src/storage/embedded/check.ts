import { join } from 'node:path'
import { systemErrorCode } from '../../core/index.ts'
import { defaultHistoryLimits } from '../mvcc/history.ts'
import type { Mirror } from '../mvcc/mvcc.ts'
import { StoreDamaged, StoreEndUnknown } from '../store.ts'
import { type LostValue, structuralDamage } from './damage.ts'
import { formatVersion, manifestName } from './file-format.ts'
import { type FileOps, nodeFiles } from './file-system.ts'
import { readFormatVersion } from './manifest.ts'
import { isCurrentValue, readStore } from './read-store.ts'

/** Something wrong with a store, and where. */
export interface StoreProblem {
  readonly file: string
  readonly offset: number
  /** The record concerned, if the damage is confined to one. */
  readonly key?: string
  readonly what: string
}

/** What a check found. */
export interface StoreReport {
  readonly ok: boolean
  /** Revision, records and segments: 0 when the store cannot be read to its end. */
  readonly revision: number
  readonly records: number
  readonly segments: number
  readonly problems: readonly StoreProblem[]
  /** Acknowledged commits may be missing at the end of the journal: the operator has to decide. */
  readonly isEndUnknown: boolean
}

/** Reads every record of a store and verifies it. Changes nothing; a server may be using the store. */
export async function checkStore(
  directory: string,
  files: FileOps = nodeFiles,
): Promise<StoreReport> {
  const lost: LostValue[] = []
  try {
    await requireCurrentStore(files, directory)
    const content = await readStore({
      files,
      directory,
      limits: defaultHistoryLimits,
      onSinkFailure: () => {},
      onLostValue: (value) => lost.push(value),
    })
    const { mirror } = content
    return {
      ok: lost.length === 0,
      revision: mirror.revision,
      records: mirror.size,
      segments: content.manifest.segments.length,
      problems: lost.map((value) => problemOf(value, mirror)),
      isEndUnknown: false,
    }
  } catch (error) {
    if (!(error instanceof StoreDamaged)) throw error
    const { file, offset, what } = error
    const problems = [...lost.map((value) => problemOf(value)), { file, offset, what }]
    const isEndUnknown = error instanceof StoreEndUnknown
    return { ok: false, revision: 0, records: 0, segments: 0, problems, isEndUnknown }
  }
}

/** Throws `StoreDamaged` unless the directory holds a store of the format that is current. */
export async function requireCurrentStore(files: FileOps, directory: string): Promise<void> {
  const path = join(directory, manifestName)
  try {
    const version = await readFormatVersion(files, directory)
    if (version === formatVersion) return
    throw structuralDamage(
      path,
      0,
      `the store has the older format version ${version}; start the server once to upgrade it`,
    )
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
    throw new StoreDamaged(`there is no store in ${directory}`, { file: path, offset: 0 })
  }
}

function problemOf(lost: LostValue, mirror?: Mirror): StoreProblem {
  const { record, path: file, offset } = lost
  const live = mirror === undefined || isCurrentValue(lost, mirror)
  const what = live
    ? `the value of ${record.key} at revision ${record.revision} fails its checksum; ` +
      'the server does not start; restore a backup, or remove the object by `store repair`'
    : `an earlier value of ${record.key}, of revision ${record.revision}, fails its checksum; ` +
      'no current object is affected'
  return { file, offset, key: record.key, what }
}
