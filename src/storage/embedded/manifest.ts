import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { isRecord } from '../../core/index.ts'
import { StoreDamaged } from '../store.ts'
import { structuralDamage } from './damage.ts'
import { formatVersion, manifestName, newManifestName } from './file-format.ts'
import { type FileOps, readWholeFile, writeWholeFile } from './file-system.ts'

/** Which files make up the store: the checkpoint and the segments that come after it, in order. */
export interface Manifest {
  readonly checkpoint: number | undefined
  readonly segments: readonly number[]
}

const format = 'sallyport-store'

/** Replaces the manifest in one step: after a crash it is the old one or the new one. */
export async function writeManifest(
  files: FileOps,
  directory: string,
  manifest: Manifest,
): Promise<void> {
  await writeWholeFile(files, join(directory, newManifestName), encodeManifest(manifest))
  await files.rename(join(directory, newManifestName), join(directory, manifestName))
  await files.syncDirectory(directory)
}

/** The version of the format that the directory's manifest states; throws when it is not ours. */
export async function readFormatVersion(files: FileOps, directory: string): Promise<number> {
  const path = join(directory, manifestName)
  const fields = await readFields(files, path)
  const version = fields['version']
  if (typeof version === 'number' && version <= formatVersion) return version
  throw new StoreDamaged(
    `${directory} has store format version ${String(version)}, this Sallyport knows up to ` +
      `${formatVersion}: use the newer Sallyport that wrote it`,
    { file: path, offset: 0 },
  )
}

/** Reads a manifest of the current version. */
export async function readManifest(files: FileOps, directory: string): Promise<Manifest> {
  const path = join(directory, manifestName)
  const { checkpoint, segments } = await readFields(files, path)
  if (
    (checkpoint !== null && !isSequence(checkpoint)) ||
    !Array.isArray(segments) ||
    segments.length === 0 ||
    !segments.every(isSequence)
  ) {
    throw structuralDamage(path, 0, 'the manifest does not name the files of the store')
  }
  return { checkpoint: checkpoint ?? undefined, segments }
}

/** The manifest as bytes: a line of JSON and a line with its checksum. */
function encodeManifest(manifest: Manifest): Buffer {
  const line = JSON.stringify({
    format,
    version: formatVersion,
    checkpoint: manifest.checkpoint ?? null,
    segments: manifest.segments,
  })
  return Buffer.from(withChecksum(line))
}

async function readFields(files: FileOps, path: string): Promise<Record<string, unknown>> {
  const text = (await readWholeFile(files, path)).toString('utf8')
  const [line = ''] = text.split('\n')
  if (text !== withChecksum(line)) {
    throw structuralDamage(path, 0, 'this is no manifest of ours, or it fails its checksum')
  }
  const fields: unknown = JSON.parse(line)
  if (isRecord(fields) && fields['format'] === format) return fields
  throw structuralDamage(path, 0, 'this is not the manifest of a Sallyport store')
}

const withChecksum = (line: string): string =>
  `${line}\ncrc32 ${crc32(line).toString(16).padStart(8, '0')}\n`

const isSequence = (value: unknown): value is number => Number.isSafeInteger(value)

/** The manifest of a store that is open for writing; changes to it are made one after the other. */
export class ManifestKeeper {
  readonly #files: FileOps
  readonly #directory: string
  #manifest: Manifest
  #lastSequence: number
  #lastChange: Promise<void> = Promise.resolve()

  constructor(files: FileOps, directory: string, manifest: Manifest) {
    this.#files = files
    this.#directory = directory
    this.#manifest = manifest
    this.#lastSequence = Math.max(...manifest.segments, manifest.checkpoint ?? 0)
  }

  /** A number that no file has had, not even one whose making failed. */
  nextSequence(): number {
    return ++this.#lastSequence
  }

  /** Segment `sequence` comes next; `emptied` holds nothing and is left out from now on. */
  addSegment(sequence: number, emptied?: number): Promise<void> {
    return this.#change(({ checkpoint, segments }) => ({
      checkpoint,
      segments: [...segments.filter((segment) => segment !== emptied), sequence],
    }))
  }

  /** Checkpoint `sequence` takes the place of all before segment `sequence`. */
  adoptCheckpoint(sequence: number): Promise<void> {
    return this.#change(({ segments }) => ({
      checkpoint: sequence,
      segments: segments.filter((segment) => segment >= sequence),
    }))
  }

  /** Resolves when the change is on disk; after a throw either manifest may be there. */
  #change(change: (manifest: Manifest) => Manifest): Promise<void> {
    const done = this.#lastChange.then(async () => {
      const changed = change(this.#manifest)
      await writeManifest(this.#files, this.#directory, changed)
      this.#manifest = changed
    })
    this.#lastChange = done.catch(() => {})
    return done
  }
}
