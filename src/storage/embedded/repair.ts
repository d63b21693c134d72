import { join } from 'node:path'
import { defaultHistoryLimits } from '../mvcc/history.ts'
import { type FileOps, nodeFiles, writeWholeFile } from './file-system.ts'
import { readFormatVersion } from './manifest.ts'
import { readStore, type StoreContent, type UnknownEnd } from './read-store.ts'
import { usedLength } from './segment-reader.ts'
import { writeMarker } from './synced-marker.ts'

/** What a repair of the journal's end removes. */
export interface RepairPlan {
  /** The last revision that stays. */
  readonly revision: number
  readonly records: number
  readonly file: string
  readonly offset: number
  /** Bytes after that place which are not readable. */
  readonly bytes: number
  /** Where those bytes are kept. */
  readonly keptIn: string | undefined
  readonly why: string
}

/**
 * Continues a journal whose end nothing proves at its last readable commit; what follows is moved
 * to a file of its own first. With `apply: false` it changes nothing. Returns `undefined` when no
 * repair is needed, throws `StoreDamaged` for damage before the end. The caller holds the lock of
 * the data directory; after a crash it can be run again.
 */
export async function repairStore(
  directory: string,
  { apply }: { readonly apply: boolean },
  files: FileOps = nodeFiles,
): Promise<RepairPlan | undefined> {
  const found = await readEnd(directory, files)
  if (found === undefined || !apply) return found?.plan
  const { plan, tail, content } = found
  if (plan.keptIn !== undefined) {
    await writeWholeFile(files, plan.keptIn, tail)
    await files.syncDirectory(directory)
  }
  const { path, header, offset } = content.active
  const file = await files.open(path, 'edit')
  try {
    await file.truncate(offset)
    await file.sync()
  } finally {
    await file.close()
  }
  const place = { segment: header, offset, lastSequence: header.sequence }
  await writeMarker(files, directory, place, { closed: true })
  await files.syncDirectory(directory)
  return plan
}

async function readEnd(
  directory: string,
  files: FileOps,
): Promise<{ plan: RepairPlan; tail: Buffer; content: StoreContent } | undefined> {
  await readFormatVersion(files, directory)
  let unknown: UnknownEnd | undefined
  const content = await readStore({
    files,
    directory,
    limits: defaultHistoryLimits,
    onSinkFailure: () => {},
    onLostValue: () => {},
    onUnknownEnd: (end) => {
      unknown = end
    },
  })
  if (unknown === undefined) return undefined
  const { path, offset, why } = unknown
  const tail = await readTail(files, path, offset)
  const kept = `discarded-${content.active.header.sequence}-${offset}.bin`
  return {
    content,
    tail,
    plan: {
      revision: content.mirror.revision,
      records: content.mirror.size,
      file: path,
      offset,
      bytes: tail.length,
      keptIn: tail.length === 0 ? undefined : join(directory, kept),
      why,
    },
  }
}

/** What follows `offset`, without the zeros that a segment grows by. */
async function readTail(files: FileOps, path: string, offset: number): Promise<Buffer> {
  const file = await files.open(path, 'read')
  try {
    const bytes = Buffer.alloc(Math.max(0, (await file.size()) - offset))
    const tail = bytes.subarray(0, await file.read(bytes, offset))
    return tail.subarray(0, usedLength(tail))
  } finally {
    await file.close()
  }
}
