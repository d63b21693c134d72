import { systemErrorCode } from '../../../core/index.ts'
import { structuralDamage } from '../damage.ts'
import {
  decodeFileHeader,
  encodeFileHeader,
  type FileHeader,
  type FileKind,
  fileHeaderLength,
} from '../format/file-header.ts'
import type { FileOps, OpenFile } from './file-ops.ts'

/** An open file that holds batches. */
export interface DataFile {
  readonly path: string
  readonly file: OpenFile
  readonly header: FileHeader
}

/** Opens a file and reads its header; throws `StoreDamaged` when it is missing or not what it should be. */
export async function openDataFile(
  files: FileOps,
  path: string,
  kind: FileKind,
): Promise<DataFile> {
  const file = await files.open(path, 'read').catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error
    throw structuralDamage(path, 0, 'the file is missing')
  })
  try {
    const bytes = Buffer.alloc(fileHeaderLength)
    const header = decodeFileHeader(bytes.subarray(0, await file.read(bytes, 0)), kind)
    if (typeof header === 'string') throw structuralDamage(path, 0, header)
    return { path, file, header }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Makes a file that holds nothing but its header, not yet synced. */
export async function createDataFile(
  files: FileOps,
  path: string,
  header: FileHeader,
): Promise<DataFile> {
  const file = await files.open(path, 'create')
  try {
    await file.write([encodeFileHeader(header)], 0)
    return { path, file, header }
  } catch (error) {
    await file.close()
    throw error
  }
}
