import { ApiError } from '../../core/index.ts'
import type { StoredRecord } from '../../storage/index.ts'
import { listObjects } from '../registry/list-objects.ts'
import { waitForRevision } from '../registry/resource-version.ts'
import { selectionOf } from '../registry/selection.ts'
import { watchObjects } from '../registry/watch-objects.ts'
import { type ApiCall, selectionQuery } from './api-call.ts'
import type { EventEncoder } from './event-bytes.ts'
import { OpenWatch, type WatchLimits } from './open-watch.ts'
import { streamForm } from './response-form.ts'
import { explainStoreFailure } from './store-failures.ts'
import { includeObject } from './views.ts'
import { type WatchQuery, watchQueryOf } from './watch-query.ts'

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
