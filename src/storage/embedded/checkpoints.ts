import { join } from 'node:path'
import type { Clock, Logger } from '../../core/index.ts'
import type { Mirror } from '../mvcc/mvcc.ts'
import { type StoredRecord, type StoreEvent, StoreWriteFailed } from '../store.ts'
import { writeCheckpoint } from './checkpoint.ts'
import { writeFailure } from './damage.ts'
import { checkpointName, newFileHeader, sequenceOf } from './file-format.ts'
import type { FileOps } from './file-system.ts'
import type { Journal } from './journal.ts'
import type { ManifestKeeper } from './manifest.ts'

/** What checkpoints work with. */
export interface CheckpointParts {
  readonly files: FileOps
  readonly directory: string
  readonly manifest: ManifestKeeper
  readonly journal: Journal
  readonly mirror: Mirror
  readonly clock: Clock
  readonly log: Logger
  readonly isWorthwhile: CheckpointRule
}

/** Whether to replace a journal of so many bytes by the so many that are still needed of it. */
export type CheckpointRule = (journalBytes: number, heldBytes: number) => boolean

const minJournalBytes = 32 * 1024 ** 2

/** A small journal is read fast enough; a larger one may be as much again as what it is good for. */
export const defaultCheckpointRule: CheckpointRule = (journalBytes, heldBytes) =>
  journalBytes > Math.max(minJournalBytes, heldBytes)

/** Replaces the journal's past by what is still needed of it, while commits go on. */
export class Checkpoints {
  readonly #parts: CheckpointParts
  readonly #closing = new AbortController()
  #running: Promise<boolean> | undefined
  /** After a failure: the journal's size before which it is not tried again. */
  #notBeforeBytes = 0

  constructor(parts: CheckpointParts) {
    this.#parts = parts
  }

  get due(): boolean {
    const { journal, mirror, isWorthwhile } = this.#parts
    if (this.#running || journal.bytes < this.#notBeforeBytes) return false
    return isWorthwhile(journal.bytes, mirror.heldBytes)
  }

  /**
   * Begins one in the background, or waits for the one that is running; resolves to whether it was
   * written. To be called between two commits, right after a rotation.
   */
  begin(): Promise<boolean> {
    this.#running ??= this.#write().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Resolves when none is running. */
  async idle(): Promise<void> {
    await this.#running
  }

  /** After a failure: not again before the journal has grown by a quarter. */
  postpone(): void {
    this.#notBeforeBytes = this.#parts.journal.bytes * 1.25
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running
  }

  async #write(): Promise<boolean> {
    const { journal, mirror, clock, log } = this.#parts
    const started = clock.monotonic()
    const covered = journal.earlierBytes
    try {
      await this.#replaceEarlier(journal.sequence)
      journal.forget(covered)
      this.#notBeforeBytes = 0
      const durationMs = Math.round(clock.monotonic() - started)
      log.debug({ revision: mirror.revision, durationMs }, 'checkpoint written')
      return true
    } catch (err) {
      if (this.#closing.signal.aborted) return false
      this.postpone()
      log.warn({ err }, 'checkpoint failed; the journal goes on growing')
      return false
    }
  }

  async #replaceEarlier(sequence: number): Promise<void> {
    const { files, directory, manifest, mirror } = this.#parts
    const snapshot = mirror.snapshot()
    const { revision, floor } = snapshot
    const header = newFileHeader({ kind: 'checkpoint', sequence, revision, floor })
    const path = join(directory, checkpointName(sequence))
    const isLost = (record: StoredRecord) => mirror.damageOf(record) !== undefined
    await writeCheckpoint(files, { path, header }, { ...snapshot, isLost }, this.#closing.signal)
    await files.syncDirectory(directory)
    await manifest.adoptCheckpoint(sequence)
    await this.#removeBefore(sequence)
  }

  async #removeBefore(sequence: number): Promise<void> {
    const { files, directory, log } = this.#parts
    try {
      for (const name of await files.list(directory)) {
        if ((sequenceOf(name) ?? sequence) < sequence) await files.remove(join(directory, name))
      }
    } catch (err) {
      log.warn({ err }, 'cannot remove files that a checkpoint replaced')
    }
  }
}

/** What keeps a store on disk. */
export interface DurabilityParts {
  readonly directory: string
  readonly mirror: Mirror
  readonly journal: Journal
  readonly checkpoints: Checkpoints
  readonly log: Logger
}

/** Makes commits durable and keeps the files in good order between them. */
export class Durability {
  readonly #parts: DurabilityParts

  constructor(parts: DurabilityParts) {
    this.#parts = parts
  }

  /** Why the last write failed, as long as no later one has succeeded. */
  get failure(): unknown {
    return this.#parts.journal.failure
  }

  /** Resolves when the commit is on disk; throws `StoreWriteFailed`, and then nothing of it counts. */
  async persist(events: readonly StoreEvent[]): Promise<void> {
    const { journal, checkpoints } = this.#parts
    if (journal.failure !== undefined) await this.#leaveFailedSegment()
    else if (checkpoints.due) await this.#beginCheckpoint()
    await journal.append(events)
  }

  /** Replaces all files by one that holds only what the mirror does; throws `StoreWriteFailed`. */
  async compact(): Promise<void> {
    const { directory, journal, mirror, checkpoints } = this.#parts
    await checkpoints.idle()
    try {
      await journal.rotate(mirror.revision)
    } catch (error) {
      throw writeFailure(directory, error, 'the history was not removed')
    }
    if (await checkpoints.begin()) return
    throw new StoreWriteFailed(`cannot write to ${directory}; the history was not removed`)
  }

  async close(): Promise<void> {
    await this.#parts.checkpoints.close()
    await this.#parts.journal.close()
  }

  async #leaveFailedSegment(): Promise<void> {
    const { directory, journal, mirror, checkpoints, log } = this.#parts
    try {
      await journal.rotate(mirror.revision)
    } catch (error) {
      throw writeFailure(directory, error, 'nothing was changed')
    }
    log.warn({ segment: journal.sequence }, 'writing works again, in a new segment')
    // The failed write may have torn the page that it shares with the last good commit. That is
    // still in memory: with a checkpoint the failed segment is not needed any more.
    void checkpoints.begin()
  }

  async #beginCheckpoint(): Promise<void> {
    const { directory, journal, mirror, checkpoints, log } = this.#parts
    try {
      await journal.rotate(mirror.revision)
      void checkpoints.begin()
    } catch (err) {
      log.warn({ err }, 'cannot begin a checkpoint')
      checkpoints.postpone()
      if (journal.failure !== undefined) throw writeFailure(directory, err, 'nothing was changed')
    }
  }
}
