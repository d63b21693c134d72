import { join } from 'node:path'
import type { Clock, Logger } from '../../../core/index.ts'
import type { StoredRecord } from '../../contract.ts'
import type { Mirror } from '../../mirror/mirror.ts'
import type { FileOps } from '../disk/file-ops.ts'
import { newFileHeader } from '../format/file-header.ts'
import { checkpointName, sequenceOf } from '../format/names.ts'
import type { Journal } from './journal.ts'
import type { ManifestKeeper } from './manifest-keeper.ts'
import { writeCheckpoint } from './write-checkpoint.ts'

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
  #running: Promise<void> | undefined
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

  /** Begins one in the background. To be called between two commits, right after a rotation. */
  begin(): void {
    this.#running ??= this.#write().finally(() => {
      this.#running = undefined
    })
  }

  /** After a failure: not again before the journal has grown by a quarter. */
  postpone(): void {
    this.#notBeforeBytes = this.#parts.journal.bytes * 1.25
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running
  }

  async #write(): Promise<void> {
    const { journal, mirror, clock, log } = this.#parts
    const started = clock.monotonic()
    const covered = journal.earlierBytes
    try {
      await this.#replaceEarlier(journal.sequence)
      journal.forget(covered)
      this.#notBeforeBytes = 0
      const durationMs = Math.round(clock.monotonic() - started)
      log.debug({ revision: mirror.revision, durationMs }, 'checkpoint written')
    } catch (err) {
      if (this.#closing.signal.aborted) return
      this.postpone()
      log.warn({ err }, 'checkpoint failed; the journal goes on growing')
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
