import { ApiError, longestTimerMs, toKubeStatus } from '../../core/index.ts'
import { reportUnread } from '../../http/index.ts'
import type { StoredRecord, Subscription } from '../../storage/index.ts'
import { listObjects } from '../registry/list.ts'
import { parseResourceVersion, waitForRevision } from '../registry/resource-version.ts'
import { selectionOf } from '../registry/selection.ts'
import { watchObjects } from '../registry/watch.ts'
import { type FieldProblem, forbiddenValue, notSupported } from '../validation/index.ts'
import {
  type ApiCall,
  booleanParameter,
  explainStoreFailure,
  integerParameter,
  isTrue,
  refuseProblems,
  selectionQuery,
} from './call.ts'
import { streamForm, writePaced } from './response.ts'
import { includeObject } from './views.ts'
import { type EventEncoder, errorLine, writeShared } from './watch-events.ts'
import { PacedLines, WatchTurns } from './watch-turns.ts'

/** What a watch request asks for. */
export interface WatchQuery {
  /** Watch after this revision; `undefined` means from now. */
  readonly after: number | undefined
  /** Send the present state first, as ADDED events. */
  readonly initialState: boolean
  /** Mark the end of the initial state with a bookmark. */
  readonly initialBookmark: boolean
  readonly bookmarks: boolean
  readonly timeoutSeconds: number | undefined
}

const notOlderThan = 'NotOlderThan'

/** The parameters that say where a watch begins. */
interface Beginning {
  readonly version: string
  readonly match: string
  /** `undefined` when nobody said anything about it. */
  readonly initial: boolean | undefined
}

/** A watch from no version begins with the present state, as if that had been asked for in the newer way. */
function beginningOf(query: URLSearchParams): Beginning {
  const version = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const initial = query.get('sendInitialEvents')
  if (initial !== null) return { version, match, initial: isTrue(initial) }
  const isOlderWay = match === '' && (version === '' || version === '0')
  return isOlderWay
    ? { version, match: notOlderThan, initial: true }
    : { version, match, initial: undefined }
}

function problemsOf({ match, initial }: Beginning, continues: boolean): FieldProblem[] {
  const field = 'resourceVersionMatch'
  const problems: FieldProblem[] = []
  const forbid = (why: string) => problems.push(forbiddenValue(field, why))
  if (initial !== undefined && match !== notOlderThan)
    forbid(`sendInitialEvents requires setting resourceVersionMatch to ${notOlderThan}`)
  if (initial !== undefined && continues)
    forbid('resourceVersionMatch is forbidden when continue is provided')
  if (initial === undefined && match !== '')
    forbid('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
  if (match !== '' && match !== notOlderThan)
    problems.push(notSupported(field, match, [notOlderThan]))
  return problems
}

/** Reads the parameters of a watch; throws a 400 or 422. */
export function watchQueryOf({ info }: Pick<ApiCall, 'info'>): WatchQuery {
  const { query } = info
  const timeoutSeconds = integerParameter(query, 'timeoutSeconds')
  const bookmarks = booleanParameter(query, 'allowWatchBookmarks')
  const beginning = beginningOf(query)
  refuseProblems('ListOptions', problemsOf(beginning, Boolean(query.get('continue'))))
  const { version, initial = false } = beginning
  const revision = version === '' ? 0 : parseResourceVersion(version)
  return {
    after: revision === 0 ? undefined : revision,
    initialState: initial,
    initialBookmark: initial && bookmarks,
    bookmarks,
    timeoutSeconds,
  }
}

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
  maxUnreadBytes: 16 * 2 ** 20,
}

/** Of the process, as the event loop is. */
const turns = new WatchTurns()

/** One open watch: writes lines to its client until somebody ends it. */
class OpenWatch {
  readonly #call: ApiCall
  readonly #limits: WatchLimits
  readonly #timers: NodeJS.Timeout[] = []
  readonly #lines = new PacedLines(turns, (line) => writeShared(this.#call.response, line))
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
    this.#lines.write(line)
    const unread = this.#lines.waitingBytes + this.#call.response.writableLength
    if (unread > this.#limits.maxUnreadBytes) this.cut()
  }

  writeAll(lines: readonly Buffer[]): void {
    for (const line of lines) this.write(line)
  }

  /** Writes as fast as the client reads; for what is too much to wait in memory. */
  async writeSlowly(lines: Iterable<Buffer>): Promise<void> {
    await writePaced(this.#call.response, lines, () => !this.#open)
    if (this.#open) reportUnread(this.#call.response)
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
    this.#lines.flush()
    this.#call.response.end()
  }

  /** Ends a client that does not read: what is unread is dropped with the connection. */
  cut(): void {
    if (!this.#close()) return
    this.#lines.drop()
    // Without an error, HTTP/2 would end the stream as if it were complete.
    this.#call.response.destroy(new Error('the client does not read its watch'))
  }

  startTimers(query: WatchQuery, encoder: EventEncoder): void {
    // A client may leave during the initial state; nothing would clear these timers any more.
    if (!this.#open) return
    const { minTimeoutMs, bookmarkEveryMs } = this.#limits
    const lifeMs =
      query.timeoutSeconds === undefined || query.timeoutSeconds === 0
        ? minTimeoutMs * (1 + Math.random())
        : query.timeoutSeconds * 1000
    this.#timers.push(setTimeout(() => this.end(), Math.min(lifeMs, longestTimerMs)))
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

function encoderOf(call: ApiCall): EventEncoder {
  const form = streamForm(call.request.headers.accept)
  if (form.view === 'object') return call.resource.events
  const { clock } = call.context
  return call.resource.views.encoder(form.view, includeObject(call), () => clock.now())
}

function* addedLines(
  runs: readonly (readonly StoredRecord[])[],
  encoder: EventEncoder,
): Generator<Buffer> {
  for (const run of runs) for (const record of run) yield encoder.change({ type: 'ADDED', record })
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
  await watch.writeSlowly(addedLines(page.runs, encoder))
  if (query.initialBookmark) watch.write(encoder.bookmark(page.revision, true))
  return page.revision
}

/** GET with `watch=true`: a stream of changes. */
export async function handleWatch(call: ApiCall, limits: WatchLimits): Promise<void> {
  const { context, resource, response } = call
  const query = watchQueryOf(call)
  const encoder = encoderOf(call)
  // Selectors that cannot be read are refused while there is still a status code to do it with.
  selectionOf(resource.definition, selectionQuery(call))
  if (query.after !== undefined) await waitForRevision(context, query.after, call.signal)
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
          commit: (events, selection) => watch.writeAll(encoder.commit(events, selection)),
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
