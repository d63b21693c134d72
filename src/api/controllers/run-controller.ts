import { aborted, type Clock, type Logger } from '../../core/index.ts'
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
