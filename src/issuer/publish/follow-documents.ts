import { type Logger, pause } from '../../core/index.ts'
import type { PublicDocuments } from './public-documents.ts'
import type { ReadDocuments } from './read-documents.ts'

/** How documents are followed. */
export interface FollowDocumentsOptions {
  readonly read: ReadDocuments
  readonly everyMs: number
  readonly log: Logger
  /** Called with each reading, changed or not. */
  readonly onRead: (documents: PublicDocuments) => void | Promise<void>
}

/** Reads again and again until the signal aborts; what cannot be read leaves all as it is, and is said. */
export async function followDocuments(
  { read, everyMs, log, onRead }: FollowDocumentsOptions,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await pause(everyMs, signal)
    if (signal.aborted) return
    try {
      await onRead(await read(signal))
    } catch (err) {
      if (signal.aborted) return
      log.error({ err }, 'cannot read the documents of the issuer; those from before stay')
    }
  }
}
