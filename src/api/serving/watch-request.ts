import { once } from 'node:events'
import { ApiError, toKubeStatus } from '../../core/index.ts'
import type { Subscription } from '../../storage/index.ts'
import { listObjects } from '../registry/list-objects.ts'
import { waitForRevision } from '../registry/resource-version.ts'
import { selectionOf } from '../registry/selection.ts'
import { watchObjects } from '../registry/watch-objects.ts'
import { type ApiCall, selectionQuery } from './api-call.ts'
import { type EventEncoder, errorLine, ViewEvents } from './event-bytes.ts'
import { includeObject } from './read-object.ts'
import { streamForm } from './response-form.ts'
import { writeShared } from './shared-chunk.ts'
import { explainStoreFailure } from './store-failures.ts'
import { type WatchQuery, watchQueryOf } from './watch-query.ts'

/** Bounds of every watch. */
export interface WatchLimits {
  /** Watches without a timeout end after this time, and at the latest after twice of it. */
  readonly minTimeoutMs: number
  readonly bookmarkEveryMs: number
  /** A client that lets more than this pile up unread is cut off. */
  readonly maxUnreadBytes: number
}

/** Kubernetes' own bounds, where it has them. */
export const defaultWatchLimits: WatchLimits = {
  minTimeoutMs: 30 * 60_000,
  bookmarkEveryMs: 60_000,
  maxUnreadBytes: 16 * 1024 * 1024,
}

/** One open watch: writes lines to its client until somebody ends it. */
class OpenWatch {
  readonly #call: ApiCall
  readonly #limits: WatchLimits
  readonly #timers: NodeJS.Timeout[] = []
  readonly ended: Promise<void>
  #subscription: Subscription | undefined
  #end: () => void = () => {}
  #open = true

  constructor(call: ApiCall, limits: WatchLimits) {
    this.#call = call
    this.#limits = limits
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    call.signal.addEventListener('abort', () => this.end(), { once: true })
    call.response.once('close', () => this.end())
    if (call.signal.aborted) this.end()
  }

  write(line: Buffer): void {
    if (!this.#open || line.length === 0) return
    writeShared(this.#call.response, line)
    if (this.#call.response.writableLength > this.#limits.maxUnreadBytes) this.cut()
  }

  /** Writes as fast as the client reads; for what is too much to wait in memory. */
  async writeSlowly(bytes: Buffer): Promise<void> {
    const { response } = this.#call
    if (!this.#open || bytes.length === 0 || response.write(bytes)) return
    await Promise.race([once(response, 'drain').catch(() => {}), this.ended])
  }

  follow(subscribe: () => Subscription): void {
    this.#subscription = subscribe()
    if (!this.#open) this.#subscription.close()
  }

  /** Ends with the reason in the stream, as Kubernetes does it once an answer has begun. */
  fail(error: ApiError): void {
    this.write(errorLine(toKubeStatus(error)))
    this.end()
  }

  /** Ends in good order: the client may come back and resume. */
  end(): void {
    if (!this.#close()) return
    this.#call.response.end()
  }

  /** Ends a client that does not read: what is unread is dropped with the connection. */
  cut(): void {
    if (!this.#close()) return
    // Without an error, HTTP/2 would end the stream as if it were complete.
    this.#call.response.destroy(new Error('the client does not read its watch'))
  }

  startTimers(query: WatchQuery, encoder: EventEncoder): void {
    const { minTimeoutMs, bookmarkEveryMs } = this.#limits
    const lifeMs =
      query.timeoutSeconds === undefined || query.timeoutSeconds === 0
        ? minTimeoutMs * (1 + Math.random())
        : query.timeoutSeconds * 1000
    // Node.js fires timers beyond 2^31 ms at once.
    this.#timers.push(setTimeout(() => this.end(), Math.min(lifeMs, 2 ** 31 - 1)))
    if (!query.bookmarks) return
    const { store } = this.#call.context
    const mark = () => this.write(encoder.bookmark(store.revision, false))
    this.#timers.push(setInterval(mark, bookmarkEveryMs))
  }

  #close(): boolean {
    if (!this.#open) return false
    this.#open = false
    this.#subscription?.close()
    for (const timer of this.#timers) clearTimeout(timer)
    this.#end()
    return true
  }
}

function encoderOf(call: ApiCall, shared: EventEncoder): EventEncoder {
  const form = streamForm(call.request.headers.accept)
  if (form.view === 'object') return shared
  return new ViewEvents(call.resource.definition, form, {
    includeObject: includeObject(call),
    now: () => call.context.clock.now(),
  })
}

/** Sends the present state and returns its revision, after which the changes follow. */
async function sendInitialState(
  call: ApiCall,
  watch: OpenWatch,
  encoder: EventEncoder,
  query: WatchQuery,
): Promise<number> {
  const { definition } = call.resource
  const page = await listObjects(call.context, definition, selectionQuery(call), call.signal)
  for (const run of page.runs) {
    const lines = run.map((record) => encoder.change({ type: 'ADDED', record }))
    await watch.writeSlowly(Buffer.concat(lines))
  }
  if (query.initialBookmark) watch.write(encoder.bookmark(page.revision, true))
  return page.revision
}

/** GET with `watch=true`: a stream of changes. */
export async function handleWatch(
  call: ApiCall,
  shared: EventEncoder,
  limits: WatchLimits,
): Promise<void> {
  const { context, resource, response } = call
  const query = watchQueryOf(call)
  const encoder = encoderOf(call, shared)
  // Selectors that cannot be read are refused while there is still a status code to do it with.
  selectionOf(resource.definition, selectionQuery(call))
  if (query.after !== undefined) await waitForRevision(context.store, query.after, call.signal)
  const watch = new OpenWatch(call, limits)
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.flushHeaders()
  try {
    const after = query.initialState
      ? await sendInitialState(call, watch, encoder, query)
      : (query.after ?? context.store.revision)
    watch.follow(() =>
      watchObjects(
        context,
        resource.definition,
        { ...selectionQuery(call), after },
        {
          commit: (events, selection) => watch.write(encoder.commit(events, selection)),
          fail: (error) => watch.fail(error),
        },
      ),
    )
    watch.startTimers(query, encoder)
  } catch (error) {
    // The answer has begun, so the failure goes into the stream, as Kubernetes does it.
    const failure = explainStoreFailure(error)
    if (!(failure instanceof ApiError)) throw failure
    watch.fail(failure)
  }
  await watch.ended
}
