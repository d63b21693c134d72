import type { FileOps } from '../disk/file-ops.ts'
import { type Manifest, writeManifest } from '../disk/manifest.ts'

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
