import { type ListPage, type ListQuery, listObjects } from '../registry/list-objects.ts'
import { forbiddenValue } from '../validation/index.ts'
import { type ApiCall, integerParameter, selectionQuery, wantsPretty } from './api-call.ts'
import { acceptsGzip, type CompressedRuns, minGzipBytes } from './gzip-runs.ts'
import { itemPieces, lengthOfItems } from './list-pieces.ts'
import { refuseProblems } from './refuse-options.ts'
import { responseForm } from './response-form.ts'
import type { RunCache } from './run-cache.ts'
import { sendListView } from './send-list-view.ts'
import { listMetaOf } from './views.ts'
import { writePaced } from './write-paced.ts'

const tail = Buffer.from(']}\n')

/** What lists have been rendered to before. */
export interface ListCaches {
  readonly plain: RunCache
  readonly compressed: CompressedRuns
}

/** The query of a list request; throws a 400 for parameters that make no sense. */
export function listQueryOf(call: ApiCall): ListQuery {
  const { query } = call.info
  const limit = Math.max(0, integerParameter(query, 'limit') ?? 0)
  integerParameter(query, 'timeoutSeconds')
  if (query.has('sendInitialEvents'))
    refuseProblems('ListOptions', [
      forbiddenValue('sendInitialEvents', 'sendInitialEvents is forbidden for list'),
    ])
  const from = query.get('continue')
  const resourceVersion = query.get('resourceVersion')
  const resourceVersionMatch = query.get('resourceVersionMatch')
  return {
    ...selectionQuery(call),
    ...(limit > 0 && { limit }),
    ...(from && { continue: from }),
    ...(resourceVersion && { resourceVersion }),
    ...(resourceVersionMatch && { resourceVersionMatch }),
  }
}

async function sendListBytes(call: ApiCall, page: ListPage, caches: ListCaches): Promise<void> {
  const { response } = call
  const { runs } = page
  const head = Buffer.from(
    `${call.resource.bytes.listHead}${JSON.stringify(listMetaOf(page))},"items":[`,
  )
  const length = head.length + lengthOfItems(runs) + tail.length
  if (length >= minGzipBytes && acceptsGzip(call.request)) {
    await caches.compressed.send(response, head, runs, tail)
    return
  }
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': length })
  await writePaced(response, inBetween(head, itemPieces(runs, caches.plain), tail))
  response.end()
}

function* inBetween(head: Buffer, pieces: Iterable<Buffer>, end: Buffer): Generator<Buffer> {
  yield head
  yield* pieces
  yield end
}

/** GET of a collection. */
export async function handleList(call: ApiCall, caches: ListCaches): Promise<void> {
  const form = responseForm(call.request.headers.accept)
  const page = await listObjects(
    call.context,
    call.resource.definition,
    listQueryOf(call),
    call.signal,
  )
  if (form.view === 'object' && form.encoding === 'json' && !wantsPretty(call))
    await sendListBytes(call, page, caches)
  else await sendListView(call, page, form)
}
