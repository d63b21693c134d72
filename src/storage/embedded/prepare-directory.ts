import { join } from 'node:path'
import { firstRevision } from '../mvcc/mvcc.ts'
import { StoreDamaged } from '../store.ts'
import {
  type FileHeader,
  fileHeaderLength,
  manifestName,
  markerName,
  newFileHeader,
  newManifestName,
  newMarkerName,
  segmentName,
  sequenceOf,
} from './file-format.ts'
import { createDataFile, type FileOps, removeIfThere } from './file-system.ts'
import { writeManifest } from './manifest.ts'
import { type FoundMarker, readMarker, type SyncedPlace, writeMarker } from './synced-marker.ts'

/** What every file system may put into an empty directory. */
const harmless: ReadonlySet<string> = new Set(['lost+found'])

/** Makes sure that there is a store in the directory: the one that is there, or a new one. */
export async function prepareDirectory(files: FileOps, directory: string): Promise<void> {
  await files.makeDirectory(directory)
  const names = await namesIn(files, directory)
  if (names.includes(manifestName)) return
  for (const name of names) {
    if (!(await isUnfinishedStart(files, directory, name))) throw foreign(directory, name)
  }
  for (const name of names) await files.remove(join(directory, name))
  await createStore(files, directory)
}

/** What is in a directory, apart from what file systems put there themselves. */
export async function namesIn(files: FileOps, directory: string): Promise<readonly string[]> {
  return (await files.list(directory)).filter((name) => !harmless.has(name))
}

/** Removes what a crash left behind: files of ours that the manifest does not name. */
export async function removeLeftovers(
  files: FileOps,
  directory: string,
  needed: ReadonlySet<string>,
): Promise<readonly string[]> {
  const names = await files.list(directory)
  const leftovers = names.filter((name) => sequenceOf(name) !== undefined && !needed.has(name))
  for (const name of leftovers) await files.remove(join(directory, name))
  for (const name of [newManifestName, newMarkerName]) {
    await removeIfThere(files, join(directory, name))
  }
  return leftovers
}

async function createStore(files: FileOps, directory: string): Promise<void> {
  const header = newFileHeader({
    kind: 'segment',
    sequence: 1,
    revision: firstRevision,
    floor: firstRevision,
  })
  const { file } = await createDataFile(files, join(directory, segmentName(1)), header)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
  await writeMarker(files, directory, unusedSegment(header), { closed: true })
  await files.syncDirectory(directory)
  await writeManifest(files, directory, { checkpoint: undefined, segments: [1] })
}

/** What the marker says of a segment without a commit. */
export const unusedSegment = (header: FileHeader): SyncedPlace => ({
  segment: header,
  offset: fileHeaderLength,
  lastSequence: header.sequence,
})

/** The very first start was interrupted before there was a manifest, so nothing was ever stored. */
async function isUnfinishedStart(
  files: FileOps,
  directory: string,
  name: string,
): Promise<boolean> {
  if (name === newManifestName || name === newMarkerName) return true
  if (name === markerName) return isUnused(await readMarker(files, directory))
  if (name !== segmentName(1)) return false
  const file = await files.open(join(directory, name), 'read')
  try {
    return (await file.size()) <= fileHeaderLength
  } finally {
    await file.close()
  }
}

const isUnused = (marker: FoundMarker): boolean =>
  marker.state === 'valid' &&
  marker.place.segment.sequence === 1 &&
  marker.place.offset === fileHeaderLength

function foreign(directory: string, name: string): StoreDamaged {
  const what =
    sequenceOf(name) === undefined
      ? 'it holds files of something else; choose an empty directory'
      : 'it holds data files but no manifest, as after an unfinished restore; ' +
        'restore a backup into an empty directory'
  return new StoreDamaged(`${directory} is not a Sallyport store (${name}): ${what}`, {
    file: join(directory, name),
    offset: 0,
  })
}
