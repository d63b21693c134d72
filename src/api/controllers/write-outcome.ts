import { ApiError, hasReason } from '../../core/index.ts'

const inTerminatingNamespace = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.details?.causes ?? []).some((cause) => cause.reason === 'NamespaceTerminating')

/** Waits for a delete; an object that is gone already is just as well. */
export async function deleted(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion
  } catch (error) {
    if (!hasReason(error, 'NotFound')) throw error
  }
}

/**
 * Waits for a create and returns what it made. `undefined` when somebody else was faster, or when
 * the namespace is on its way out so that trying again cannot help.
 */
export async function created<T>(creation: Promise<T>): Promise<T | undefined> {
  try {
    return await creation
  } catch (error) {
    // Not found is the namespace itself.
    if (hasReason(error, 'AlreadyExists', 'NotFound') || inTerminatingNamespace(error))
      return undefined
    throw error
  }
}

/** How many writes are under way at once when there are many to do. */
const batchSize = 64

/** Does something for each item, many at a time; fails with the first failure after all have ended. */
export async function forEachAtOnce<T>(
  items: readonly T[],
  act: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let start = 0; start < items.length; start += batchSize) {
    const batch = items.slice(start, start + batchSize)
    const outcomes = await Promise.allSettled(batch.map((item) => act(item)))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}
