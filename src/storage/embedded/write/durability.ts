import type { Logger } from '../../../core/index.ts'
import type { StoreEvent } from '../../contract.ts'
import type { Mirror } from '../../mirror/mirror.ts'
import { writeFailure } from '../damage.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Journal } from './journal.ts'

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
    checkpoints.begin()
  }

  async #beginCheckpoint(): Promise<void> {
    const { directory, journal, mirror, checkpoints, log } = this.#parts
    try {
      await journal.rotate(mirror.revision)
      checkpoints.begin()
    } catch (err) {
      log.warn({ err }, 'cannot begin a checkpoint')
      checkpoints.postpone()
      if (journal.failure !== undefined) throw writeFailure(directory, err, 'nothing was changed')
    }
  }
}
