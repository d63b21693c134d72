import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { systemErrorCode } from '../../core/index.ts'
import { type FileHeader, markerName, newMarkerName } from './file-format.ts'
import { type FileOps, type OpenFile, readWholeFile, writeWholeFile } from './file-system.ts'

/** Up to where the journal is on disk and acknowledged. */
export interface SyncedPlace {
  readonly segment: Pick<FileHeader, 'sequence' | 'salt'>
  readonly offset: number
  /** The newest segment that the manifest may name: a later one while a rotation is under way. */
  readonly lastSequence: number
}

/** The marker as found. */
export type FoundMarker =
  | {
      readonly state: 'valid'
      readonly place: SyncedPlace
      /** The store was closed at this place; nothing was written afterwards. */
      readonly closed: boolean
      /** The system has not restarted since: the marker is as the last writer left it. */
      readonly sameBoot: boolean
    }
  | { readonly state: 'missing' | 'empty' | 'damaged' }

/*
 * The marker is written after each commit and before its writers get their response, without
 * waiting for the disk. It survives the process, so after `kill -9` it is exact: everything
 * acknowledged is before it, and at most one commit is after it. It is synced in the background, so
 * after a loss of power it may be a little older than the journal; the boot id tells the two cases
 * apart.
 *
 * Layout, little-endian:
 *   0 magic  4 u32 flags  8 u32 sequence  12 u32 last sequence  16 f64 offset
 *  24 16 bytes salt of the segment  40 16 bytes boot id  56 unused  60 u32 checksum of all before
 * Store format version 1 had 20 bytes: 0 u32 sequence  8 f64 offset  16 u32 checksum.
 */
const magic = Buffer.from('SPM\x02', 'latin1')
const markerLength = 64
const version1Length = 20
const closedFlag = 1
const bootIdLength = 16
/** For how long a loss of power can set the marker back. */
const maxUnsyncedMs = 1000

/** What follows the last readable commit: zeros, part of a commit, or bytes that an interrupted write does not leave. */
export type Tail = 'zeros' | 'torn' | 'damaged'

/** Where the readable commits of the active segment end. */
export interface JournalEnd {
  readonly offset: number
  /** The start of the last commit, if there is any. */
  readonly lastBatch: number | undefined
  readonly tail: Tail
}

/** What a marker proves about an end: it is the end, a commit is missing there, or why nothing is proven. */
export type EndVerdict = 'end' | 'acknowledged' | { readonly unknown: string }

/** Judges where the active segment seems to end; the marker must have been read after that. */
export function judgeEnd(
  marker: FoundMarker,
  { sequence, salt }: Pick<FileHeader, 'sequence' | 'salt'>,
  end: JournalEnd,
): EndVerdict {
  if (marker.state !== 'valid') return { unknown: `the file "${markerName}" is ${marker.state}` }
  const { segment, offset } = marker.place
  // The server that is writing to the store has gone on in the next segment.
  if (segment.sequence > sequence) return 'end'
  if (segment.sequence === sequence) {
    if (!segment.salt.equals(salt)) {
      return { unknown: `the file "${markerName}" belongs to another store` }
    }
    if (offset > end.offset) return 'acknowledged'
  }
  if (!isCurrent(marker, sequence, end)) {
    return { unknown: `the file "${markerName}" is older than the journal` }
  }
  if (end.tail !== 'damaged') return 'end'
  return { unknown: 'the bytes at its end are damaged, not the part of an interrupted write' }
}

/** Whether the writer that left this marker can have left this end too. */
function isCurrent(
  { place, closed, sameBoot }: Extract<FoundMarker, { readonly state: 'valid' }>,
  sequence: number,
  { offset, lastBatch, tail }: JournalEnd,
): boolean {
  const synced = place.segment.sequence === sequence ? place.offset : undefined
  if (closed) return synced === offset && tail === 'zeros'
  if (sequence > place.lastSequence) return false
  // After a loss of power the marker may be any earlier one.
  if (!sameBoot) return true
  if (synced === offset) return true
  if (tail !== 'zeros') return false
  return synced === undefined ? lastBatch === undefined : synced === lastBatch
}

/** Reads the marker. */
export async function readMarker(files: FileOps, directory: string): Promise<FoundMarker> {
  const bytes = await readBytes(files, directory)
  if (bytes === undefined) return { state: 'missing' }
  if (bytes.length === 0) return { state: 'empty' }
  return decode(bytes, await files.bootId()) ?? { state: 'damaged' }
}

/** The place in a marker of store format version 1; `undefined` when there is none that is valid. */
export async function readVersion1Place(
  files: FileOps,
  directory: string,
): Promise<(Pick<FileHeader, 'sequence'> & { readonly offset: number }) | undefined> {
  const bytes = await readBytes(files, directory)
  if (bytes?.length !== version1Length) return undefined
  if (crc32(bytes.subarray(0, 16)) !== bytes.readUInt32LE(16)) return undefined
  return { sequence: bytes.readUInt32LE(0), offset: bytes.readDoubleLE(8) }
}

/** Replaces the marker of a store that is not in use, in one step. Its name is not synced. */
export async function writeMarker(
  files: FileOps,
  directory: string,
  place: SyncedPlace,
  state: { readonly closed: boolean },
): Promise<void> {
  const path = join(directory, newMarkerName)
  await writeWholeFile(files, path, encode(place, state.closed, noBootId))
  await files.rename(path, join(directory, markerName))
}

/** The marker of a store that is open for writing. */
export class SyncedMarker {
  readonly #file: OpenFile
  readonly #bootId: Buffer
  #place: SyncedPlace
  #syncTimer: NodeJS.Timeout | undefined
  #syncing: Promise<void> = Promise.resolve()

  private constructor(file: OpenFile, bootId: Buffer, place: SyncedPlace) {
    this.#file = file
    this.#bootId = bootId
    this.#place = place
  }

  /** Opens the marker and sets it to `place`, on disk. */
  static async open(files: FileOps, directory: string, place: SyncedPlace): Promise<SyncedMarker> {
    const file = await files.open(join(directory, markerName), 'edit')
    try {
      const marker = new SyncedMarker(file, await files.bootId(), place)
      marker.set(place)
      await file.sync()
      return marker
    } catch (error) {
      await file.close()
      throw error
    }
  }

  set(place: SyncedPlace): void {
    this.#file.writeNow(encode(place, false, this.#bootId), 0)
    this.#place = place
    this.#syncTimer ??= setTimeout(() => this.#sync(), maxUnsyncedMs).unref()
  }

  /** Notes that a segment is about to be added to the manifest. */
  async announce(sequence: number): Promise<void> {
    this.set({ ...this.#place, lastSequence: sequence })
    // On disk before the manifest: no crash leaves a marker that has not heard of its newest segment.
    await this.#file.sync()
  }

  async close(): Promise<void> {
    clearTimeout(this.#syncTimer)
    try {
      await this.#syncing
      this.#file.writeNow(encode(this.#place, true, this.#bootId), 0)
      await this.#file.sync()
    } finally {
      await this.#file.close()
    }
  }

  #sync(): void {
    this.#syncTimer = undefined
    // A disk that fails is noticed by the next commit, which waits for it.
    this.#syncing = this.#file.sync().catch(() => {})
  }
}

async function readBytes(files: FileOps, directory: string): Promise<Buffer | undefined> {
  try {
    return await readWholeFile(files, join(directory, markerName))
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

const noBootId = Buffer.alloc(bootIdLength)

function encode(place: SyncedPlace, closed: boolean, bootId: Buffer): Buffer {
  const bytes = Buffer.alloc(markerLength)
  magic.copy(bytes)
  bytes.writeUInt32LE(closed ? closedFlag : 0, 4)
  bytes.writeUInt32LE(place.segment.sequence, 8)
  bytes.writeUInt32LE(place.lastSequence, 12)
  bytes.writeDoubleLE(place.offset, 16)
  place.segment.salt.copy(bytes, 24)
  bootId.copy(bytes, 40, 0, bootIdLength)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 60)), 60)
  return bytes
}

function decode(bytes: Buffer, bootId: Buffer): FoundMarker | undefined {
  if (bytes.length !== markerLength || bytes.compare(magic, 0, 4, 0, 4) !== 0) return undefined
  if (crc32(bytes.subarray(0, 60)) !== bytes.readUInt32LE(60)) return undefined
  const writtenIn = bytes.subarray(40, 40 + bootIdLength)
  return {
    state: 'valid',
    closed: (bytes.readUInt32LE(4) & closedFlag) !== 0,
    sameBoot: !writtenIn.equals(noBootId) && writtenIn.equals(bootId),
    place: {
      segment: { sequence: bytes.readUInt32LE(8), salt: Buffer.from(bytes.subarray(24, 40)) },
      lastSequence: bytes.readUInt32LE(12),
      offset: bytes.readDoubleLE(16),
    },
  }
}
