import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { systemErrorCode } from '../../core/index.ts'
import { markerName } from './file-format.ts'
import { type FileOps, type OpenFile, readWholeFile } from './file-system.ts'

/** Up to where the journal is known to be on disk. */
export interface SyncedPlace {
  readonly sequence: number
  readonly offset: number
}

/*
 * The file is written after each commit and before its writers are answered, without syncing it:
 * it survives the process, and that is what it is for. After `kill -9` it tells the torn end of a
 * commit that nobody was told of from damage to one that was acknowledged. After a loss of power it
 * may be older than the journal, which is harmless: then a later batch proves the earlier ones.
 */
const markerLength = 20

/** Reads the marker; `undefined` when it is missing or itself torn. */
export async function readSyncedPlace(
  files: FileOps,
  directory: string,
): Promise<SyncedPlace | undefined> {
  try {
    return decode(await readWholeFile(files, join(directory, markerName)))
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The marker of a store that is open for writing. */
export class SyncedMarker {
  readonly #file: OpenFile

  private constructor(file: OpenFile) {
    this.#file = file
  }

  /** Opens the marker, set to `place`; makes it if there is none. */
  static async open(files: FileOps, directory: string, place: SyncedPlace): Promise<SyncedMarker> {
    const path = join(directory, markerName)
    const exists = (await files.list(directory)).includes(markerName)
    const file = await files.open(path, exists ? 'edit' : 'create')
    await file.write([encode(place)], 0)
    await file.truncate(markerLength)
    await file.sync()
    return new SyncedMarker(file)
  }

  set(place: SyncedPlace): void {
    this.#file.writeNow(encode(place), 0)
  }

  async close(): Promise<void> {
    try {
      await this.#file.sync()
    } finally {
      await this.#file.close()
    }
  }
}

function encode(place: SyncedPlace): Buffer {
  const bytes = Buffer.alloc(markerLength)
  bytes.writeUInt32LE(place.sequence, 0)
  bytes.writeDoubleLE(place.offset, 8)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 16)), 16)
  return bytes
}

function decode(bytes: Buffer): SyncedPlace | undefined {
  if (bytes.length !== markerLength) return undefined
  if (crc32(bytes.subarray(0, 16)) !== bytes.readUInt32LE(16)) return undefined
  return { sequence: bytes.readUInt32LE(0), offset: bytes.readDoubleLE(8) }
}
