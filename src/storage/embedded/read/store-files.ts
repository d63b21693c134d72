import { join } from 'node:path'
import { structuralDamage } from '../damage.ts'
import { type DataFile, openDataFile } from '../disk/data-file.ts'
import type { FileOps } from '../disk/file-ops.ts'
import { type Manifest, readManifest } from '../disk/manifest.ts'
import { checkpointName, manifestName, segmentName } from '../format/names.ts'

/** The files of a store, open for reading. */
export interface StoreFiles {
  readonly manifest: Manifest
  readonly checkpoint: DataFile | undefined
  /** In order; the last one is or was written to. */
  readonly segments: readonly [DataFile, ...DataFile[]]
  close(): Promise<void>
}

/**
 * Opens all files of a store. A server may be replacing them meanwhile: once open they stay
 * readable, and if one is gone because the manifest has changed, the new one is followed.
 */
export async function openStoreFiles(files: FileOps, directory: string): Promise<StoreFiles> {
  for (;;) {
    const manifest = await readManifest(files, directory)
    const opened: DataFile[] = []
    try {
      return await openAll(files, directory, manifest, opened)
    } catch (error) {
      await closeAll(opened)
      const now = await readManifest(files, directory)
      if (JSON.stringify(now) === JSON.stringify(manifest)) throw error
    }
  }
}

async function openAll(
  files: FileOps,
  directory: string,
  manifest: Manifest,
  opened: DataFile[],
): Promise<StoreFiles> {
  const openNumbered = async (kind: 'segment' | 'checkpoint', sequence: number) => {
    const name = kind === 'segment' ? segmentName(sequence) : checkpointName(sequence)
    const source = await openDataFile(files, join(directory, name), kind)
    opened.push(source)
    if (source.header.sequence === sequence) return source
    throw structuralDamage(source.path, 0, `the file says that it is ${kind} ${sequence}`)
  }
  const checkpoint =
    manifest.checkpoint === undefined
      ? undefined
      : await openNumbered('checkpoint', manifest.checkpoint)
  const segments: DataFile[] = []
  for (const sequence of manifest.segments) segments.push(await openNumbered('segment', sequence))
  const [first, ...rest] = segments
  if (first === undefined) {
    throw structuralDamage(join(directory, manifestName), 0, 'the manifest names no segment')
  }
  return { manifest, checkpoint, segments: [first, ...rest], close: () => closeAll(opened) }
}

async function closeAll(opened: readonly DataFile[]): Promise<void> {
  for (const { file } of opened) await file.close()
}
