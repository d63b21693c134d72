import { setImmediate as nextTurn } from 'node:timers/promises'
import { ApiError, aborted, type Clock, hasReason, type Logger } from '../../core/index.ts'
import type { Controller, ControllerOptions } from './controller.ts'
import { Reflector } from './reflector.ts'
import { type Pauses, WorkQueue } from './work-queue.ts'

/** Writes of several keys share the store's commits. */
const workers = 4
const defaultPauses: Pauses = { firstMs: 20, longestMs: 30_000 }

async function reconcileKey(
  controller: Controller,
  queue: WorkQueue,
  key: string,
  context: { readonly log: Logger; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const startedAt = context.clock.monotonic()
  try {
    const outcome = await controller.reconcile(key, context.signal)
    const durationMs = context.clock.monotonic() - startedAt
    context.log.debug({ key, durationMs }, 'reconciled')
    if (outcome !== undefined && 'again' in outcome) {
      queue.retry(key)
      return
    }
    queue.succeeded(key)
    if (outcome !== undefined) queue.addAfter(key, outcome.againAfterMs)
  } catch (err) {
    if (context.signal.aborted) return
    context.log.warn({ err, key }, 'reconcile failed, will try again')
    queue.retry(key)
  }
}

/**
 * Runs a controller until `signal` aborts: waits until all its watches have listed once, then works
 * off the keys that they ask for.
 */
export async function runController(
  controller: Controller,
  options: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const log = options.log.child({ controller: controller.name })
  const queue = new WorkQueue(controller.pauses ?? defaultPauses)
  const reflectors = controller.watches.map(
    (watch) => new Reflector(watch, { ...options, log }, (key) => queue.add(key)),
  )
  // A signal each: one signal with a listener for every watch looks like a leak to Node.
  const running = reflectors.map((reflector) => reflector.run(AbortSignal.any([signal])))
  for (const key of controller.firstKeys ?? []) queue.add(key)
  controller.attach?.((key) => queue.add(key))

  const work = async (): Promise<void> => {
    for (;;) {
      const key = await queue.take()
      if (key === undefined) return
      // Between keys everybody else gets a turn: writes of this process end in microtasks.
      await nextTurn()
      await reconcileKey(controller, queue, key, { log, clock: options.clock, signal })
      queue.done(key)
    }
  }
  await Promise.all(reflectors.map(({ synced }) => synced))
  const working = Array.from({ length: workers }, work)
  await aborted(signal)
  queue.close()
  await Promise.all([...running, ...working])
}

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

/** How many writes are under way at once when there are many to do; in between, others get a turn. */
const batchSize = 16

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
    if (start + batchSize < items.length) await nextTurn()
  }
}
