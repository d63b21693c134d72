import { basename, join } from 'node:path'
import { defaultHistoryLimits } from '../mvcc/history.ts'
import { sealedPrefix } from '../sealed-store.ts'
import { revisionGap, writeContent } from './backup.ts'
import { type LostValue, structuralDamage } from './damage.ts'
import { checkpointName, segmentName } from './file-format.ts'
import { type FileOps, nodeFiles, writeWholeFile } from './file-system.ts'
import { readFormatVersion, writeManifest } from './manifest.ts'
import { removeLeftovers } from './prepare-directory.ts'
import { isCurrentValue, readStore, type StoreContent, type UnknownEnd } from './read-store.ts'
import { usedLength } from './segment-reader.ts'
import { writeMarker } from './synced-marker.ts'

/** Bytes that a repair removes, and the file in which it keeps them. */
interface Discarded {
  readonly file: string
  readonly offset: number
  readonly bytes: number
  /** `undefined` when there are no bytes to keep. */
  readonly keptIn: string | undefined
}

/** What a repair does. */
export interface RepairPlan {
  /** The last revision that can be read. */
  readonly revision: number
  /** How many records stay. */
  readonly records: number
  /** Where the journal is given up, if it is. */
  readonly end: (Discarded & { readonly why: string }) | undefined
  /** Objects whose values are damaged. */
  readonly removed: readonly (Discarded & { readonly key: string })[]
  /** Earlier values that are damaged: the history is removed, no object is. */
  readonly lostHistory: number
}

/**
 * Continues a damaged store with what can be read: an end of the journal that is unproven or
 * unreadable is given up, and objects with damaged values are removed. All bytes that it removes
 * are kept in files. With `apply: false` it changes nothing. Returns `undefined` when no repair is
 * needed; throws `StoreDamaged` for other damage. The caller holds the lock of the data directory;
 * after a crash it can be run again.
 */
export async function repairStore(
  directory: string,
  { apply }: { readonly apply: boolean },
  files: FileOps = nodeFiles,
): Promise<RepairPlan | undefined> {
  await readFormatVersion(files, directory)
  const lost: LostValue[] = []
  let end: UnknownEnd | undefined
  const content = await readStore({
    files,
    directory,
    limits: defaultHistoryLimits,
    onSinkFailure: () => {},
    onLostValue: (value) => lost.push(value),
    onUnknownEnd: (found) => {
      end = found
    },
  })
  if (end === undefined && lost.length === 0) return undefined
  const current = lost.filter((value) => isCurrentValue(value, content.mirror))
  current.forEach(requireRemovable)
  const tail = end && (await readBytes(files, end.path, end.offset))
  const keep = (path: string, offset: number) =>
    join(directory, `discarded-${basename(path).replace(/\..*/, '')}-${offset}.bin`)
  const plan: RepairPlan = {
    revision: content.mirror.revision,
    records: content.mirror.size - current.length,
    end: end && {
      why: end.why,
      file: end.path,
      offset: end.offset,
      bytes: tail?.length ?? 0,
      keptIn: tail?.length ? keep(end.path, end.offset) : undefined,
    },
    removed: current.map(({ record, path, offset, length }) => ({
      key: record.key,
      file: path,
      offset,
      bytes: length,
      keptIn: keep(path, offset),
    })),
    lostHistory: lost.length - current.length,
  }
  if (!apply) return plan
  await keepBytes(files, plan)
  await files.syncDirectory(directory)
  await replaceContent(files, directory, content, new Set(current.map(({ record }) => record)))
  return plan
}

/** Without its keys a server would make others, and read those of a Secret again. */
function requireRemovable({ record, path, offset }: LostValue): void {
  if (!record.key.startsWith(sealedPrefix)) return
  throw structuralDamage(path, offset, `the signing keys in ${record.key} fail their checksum`)
}

async function keepBytes(files: FileOps, { end, removed }: RepairPlan): Promise<void> {
  for (const { file, offset, bytes, keptIn } of [...(end ? [end] : []), ...removed]) {
    if (keptIn === undefined) continue
    await writeWholeFile(files, keptIn, await readBytes(files, file, offset, bytes))
  }
}

/** The manifest comes before the marker: in between, the end is unproven and repair goes on. */
async function replaceContent(
  files: FileOps,
  directory: string,
  { manifest, mirror }: StoreContent,
  removed: ReadonlySet<object>,
): Promise<void> {
  const { checkpoint, segments } = manifest
  const needed = segments.map(segmentName)
  if (checkpoint !== undefined) needed.push(checkpointName(checkpoint))
  await removeLeftovers(files, directory, new Set(needed))
  const records = mirror
    .snapshot()
    .runs.flat()
    .filter((record) => !removed.has(record))
  const sequence = Math.max(...segments, checkpoint ?? 0) + 1
  const position = { sequence, revision: mirror.revision + revisionGap }
  const written = await writeContent(files, directory, records, position)
  await files.syncDirectory(directory)
  await writeManifest(files, directory, written.manifest)
  await writeMarker(files, directory, written.place, { closed: true })
  await files.syncDirectory(directory)
}

/** What is in the file from `offset` on, without the zeros that a segment grows by. */
async function readBytes(
  files: FileOps,
  path: string,
  offset: number,
  length?: number,
): Promise<Buffer> {
  const file = await files.open(path, 'read')
  try {
    const bytes = Buffer.alloc(length ?? Math.max(0, (await file.size()) - offset))
    const found = bytes.subarray(0, await file.read(bytes, offset))
    return length === undefined ? found.subarray(0, usedLength(found)) : found
  } finally {
    await file.close()
  }
}
