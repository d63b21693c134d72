import { type ListPage, type ListQuery, listObjects } from '../registry/list-objects.ts'
import { forbiddenValue } from '../validation/index.ts'
import { type ApiCall, integerParameter, selectionQuery, wantsPretty } from './api-call.ts'
import { acceptsGzip, type CompressedRuns, minGzipBytes } from './gzip-runs.ts'
import { refuseProblems } from './refuse-options.ts'
import { type ResponseForm, responseForm } from './response-form.ts'
import type { RunCache } from './run-cache.ts'
import { sendValue } from './send.ts'
import { listMetaOf, listView } from './views.ts'

const comma = Buffer.from(',')
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

function sendListBytes(call: ApiCall, page: ListPage, caches: ListCaches): void {
  const head = Buffer.from(
    `${call.resource.bytes.listHead}${JSON.stringify(listMetaOf(page))},"items":[`,
  )
  const runs = page.runs.filter((run) => run.length > 0)
  const bodies = runs.map((run) => caches.plain.get(run))
  let length = head.length + tail.length + Math.max(0, bodies.length - 1)
  for (const body of bodies) length += body.length
  if (length >= minGzipBytes && acceptsGzip(call.request)) {
    caches.compressed.send(call.response, head, runs, tail)
    return
  }
  call.response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': length })
  call.response.cork()
  call.response.write(head)
  bodies.forEach((body, index) => {
    if (index > 0) call.response.write(comma)
    call.response.write(body)
  })
  call.response.end(tail)
  call.response.uncork()
}

/** Sends a list in any form but the plainest. */
export async function sendListView(
  call: ApiCall,
  page: ListPage,
  { view, encoding }: ResponseForm,
): Promise<void> {
  const options = { encoding, pretty: wantsPretty(call) }
  await sendValue(call.response, 200, listView(call, page, view), options)
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
    sendListBytes(call, page, caches)
  else await sendListView(call, page, form)
}
