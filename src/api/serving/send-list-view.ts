import type { KubeObject } from '../../core/index.ts'
import type { ListPage } from '../registry/list-objects.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import { type ApiCall, wantsPretty } from './api-call.ts'
import { compactJson, type ListText, prettyJson, yamlText } from './list-text.ts'
import type { ResponseForm } from './response-form.ts'
import { listView } from './views.ts'
import { writePaced } from './write-paced.ts'
import { loadYamlWriter } from './yaml-text.ts'

const pieceBytes = 256 * 1024

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
function* gathered(texts: Iterable<string>): Generator<Buffer> {
  let text = ''
  for (const next of texts) {
    text += next
    if (text.length < pieceBytes) continue
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
  const pieces = gathered(text(shown, itemsOf(objectsOf(call, page), shown.itemOf)))
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
