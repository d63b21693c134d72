import type { KubeObject } from '../../core/index.ts'
import { type ListPage, type ListQuery, listObjects } from '../registry/list.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import { forbiddenValue } from '../validation/index.ts'
import {
  type ApiCall,
  integerParameter,
  refuseProblems,
  selectionQuery,
  wantsPretty,
} from './call.ts'
import {
  acceptsGzip,
  type CompressedRuns,
  itemPieces,
  lengthOfItems,
  minGzipBytes,
  type RunCache,
} from './list-cache.ts'
import {
  loadYamlWriter,
  type ResponseForm,
  responseForm,
  writePaced,
  type YamlWriter,
} from './response.ts'
import { type ListView, listMetaOf, listView } from './views.ts'

/** A list of items as text, piece by piece, so that no more than one item is in memory at a time. */
export type ListText = (view: ListView, items: Iterable<unknown>) => Generator<string>

/** The list as JSON in one line. */
export const compactJson: ListText = function* ({ frame, itemsField }, items) {
  yield `${JSON.stringify(frame).slice(0, -1)},"${itemsField}":[`
  let separator = ''
  for (const item of items) {
    yield separator + JSON.stringify(item)
    separator = ','
  }
  yield ']}\n'
}

/** Lines after the first, moved to the right; empty ones stay empty. */
const indented = (text: string, by: string): string => text.replaceAll(/\n(?!\n|$)/g, `\n${by}`)

/** The list as JSON for people. */
export const prettyJson: ListText = function* ({ frame, itemsField }, items) {
  yield `${JSON.stringify(frame, undefined, 2).slice(0, -2)},\n  "${itemsField}": [`
  let separator = ''
  for (const item of items) {
    yield `${separator}\n    ${indented(JSON.stringify(item, undefined, 2), '    ')}`
    separator = ','
  }
  yield separator === '' ? ']\n}' : '\n  ]\n}'
}

/** The list as YAML. */
export const yamlText = (stringify: YamlWriter): ListText =>
  function* ({ frame, itemsField }, items) {
    yield `${stringify(frame)}${itemsField}:`
    let isEmpty = true
    for (const item of items) {
      // Without its last line break only: others before it may belong to a text.
      yield `\n  - ${indented(stringify(item).replace(/\n$/, ''), '    ')}`
      isEmpty = false
    }
    yield isEmpty ? ' []\n' : '\n'
  }

/** YAML takes a hundred times as long to make. */
const pieceBytes: Readonly<Record<ResponseForm['encoding'], number>> = {
  json: 128 * 1024,
  yaml: 8 * 1024,
}

function* objectsOf(call: ApiCall, page: ListPage): Generator<KubeObject> {
  const { kind } = call.resource.definition
  for (const run of page.runs) for (const record of run) yield decodeObject(kind, record)
}

function* itemsOf(
  objects: Iterable<KubeObject>,
  itemOf: (object: KubeObject) => unknown,
): Generator<unknown> {
  for (const object of objects) yield itemOf(object)
}

/** Many small texts make few pieces. */
function* gathered(texts: Iterable<string>, minBytes: number): Generator<Buffer> {
  let text = ''
  for (const next of texts) {
    text += next
    if (text.length < minBytes) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

async function textOf(encoding: ResponseForm['encoding'], pretty: boolean): Promise<ListText> {
  if (encoding === 'json') return pretty ? prettyJson : compactJson
  return yamlText(await loadYamlWriter())
}

/** Sends a list in any form but the plainest, item by item if it is large. */
export async function sendListView(
  call: ApiCall,
  page: ListPage,
  { view, encoding }: ResponseForm,
): Promise<void> {
  const { response } = call
  const shown = listView(call, page, view)
  const text = await textOf(encoding, wantsPretty(call))
  const pieces = gathered(
    text(shown, itemsOf(objectsOf(call, page), shown.itemOf)),
    pieceBytes[encoding],
  )
  const first = pieces.next()
  const second = pieces.next()
  const head = first.done ? Buffer.alloc(0) : first.value
  const headers = { 'Content-Type': `application/${encoding}` }
  if (second.done) {
    response.writeHead(200, { ...headers, 'Content-Length': head.length }).end(head)
    return
  }
  response.writeHead(200, headers)
  await writePaced(response, [head, second.value])
  await writePaced(response, pieces)
  response.end()
}

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
