import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Change,
  createInformer,
  type Informer,
  type InformerOptions,
} from '../../client/index.ts'
import {
  ApiError,
  aborted,
  type BackoffOptions,
  type Clock,
  type ClusterView,
  hasReason,
  type Logger,
} from '../../core/index.ts'
import { WorkQueue } from './work-queue.ts'

/** Writes of several keys share the store's commits. */
const workers = 4
const defaultBackoff: BackoffOptions = { initialMs: 20, maxMs: 30_000 }

/** Which objects a controller caches, and which keys to reconcile when they change. */
export interface ControllerWatch<T>
  extends Pick<InformerOptions<T>, 'kind' | 'query' | 'equals' | 'index'>,
    Required<Pick<InformerOptions<T>, 'project'>> {
  /** The keys to reconcile because of a change. */
  readonly keysOf: (change: Change<T>) => Iterable<string>
  /** The keys to reconcile because everything was listed again. */
  readonly keysOfRelist?: () => Iterable<string>
}

/** What a controller is started with. */
export interface ControllerContext {
  /** Starts an informer whose changes fill the queue. Keys are reconciled once all informers are synced. */
  readonly watch: <T>(watch: ControllerWatch<T>) => Informer<T>
  /** Asks for a key for another reason than a change of objects. */
  readonly enqueue: (key: string) => void
}

/** The result of a reconcile: `undefined` when nothing is left to do, or when to reconcile the key again. */
export type Outcome = { readonly againAfterMs: number } | { readonly again: true } | undefined

/** Brings what a key names to the state it should have. Throwing means: again after a backoff. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<Outcome>

/** Brings the cluster, key by key, to the state it should have. */
export interface Controller {
  readonly name: string
  /** Between attempts at a key that fails or is not done yet. */
  readonly backoff?: BackoffOptions
  /** Called once; starts the informers. */
  start(context: ControllerContext): Reconcile
}

/** What controllers run with. */
export interface ControllerOptions {
  readonly view: ClusterView
  readonly log: Logger
  readonly clock: Clock
}

/** Starts an informer whose changes are passed on as keys. */
export function watchKeys<T>(
  { keysOf, keysOfRelist, ...watch }: ControllerWatch<T>,
  options: ControllerOptions & { readonly signal: AbortSignal },
  enqueue: (key: string) => void,
): Informer<T> {
  const enqueueAll = (keys: Iterable<string>): void => {
    for (const key of keys) enqueue(key)
  }
  const onRelist = (): void => enqueueAll(keysOfRelist?.() ?? [])
  const informer = createInformer({ ...watch, ...options, onRelist })
  informer.onChange((change) => enqueueAll(keysOf(change)))
  return informer
}

async function reconcileKey(
  reconcile: Reconcile,
  queue: WorkQueue,
  key: string,
  context: { readonly log: Logger; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const startedAt = context.clock.monotonic()
  try {
    const outcome = await reconcile(key, context.signal)
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
    context.log.warn({ err, key }, 'reconcile failed, retrying')
    queue.retry(key)
  }
}

/** Runs a controller until `signal` aborts: waits until its informers are synced, then reconciles keys. */
export async function runController(
  controller: Controller,
  options: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const log = options.log.child({ controller: controller.name })
  const queue = new WorkQueue(controller.backoff ?? defaultBackoff)
  const informers: { readonly synced: Promise<void>; readonly ended: Promise<void> }[] = []
  const enqueue = (key: string): void => queue.add(key)
  const reconcile = controller.start({
    watch(watch) {
      const informer = watchKeys(watch, { ...options, log, signal }, enqueue)
      informers.push(informer)
      return informer
    },
    enqueue,
  })

  const work = async (): Promise<void> => {
    for (;;) {
      const key = await queue.take()
      if (key === undefined) return
      // Requests get a turn between keys: writes of this process end in microtasks.
      await nextTurn()
      await reconcileKey(reconcile, queue, key, { log, clock: options.clock, signal })
      queue.done(key)
    }
  }
  await Promise.allSettled(informers.map(({ synced }) => synced))
  const working = Array.from({ length: workers }, work)
  await aborted(signal)
  queue.close()
  await Promise.all([...informers.map(({ ended }) => ended), ...working])
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
