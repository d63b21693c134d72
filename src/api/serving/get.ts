import { type KubeObject, notFound } from '../../core/index.ts'
import type { StoredRecord } from '../../storage/index.ts'
import { decodeObject, objectBytes, storeKey } from '../registry/object-bytes.ts'
import { parseResourceVersion, waitForRevision } from '../registry/resource-version.ts'
import { type ApiCall, keyOfCall, wantsPretty } from './call.ts'
import { responseForm, sendJsonBytes, sendValue } from './response.ts'
import { objectView } from './views.ts'

const nothing = Buffer.alloc(0)
const newline = Buffer.from('\n')

/** Sends one stored object in the form that the client asked for. */
export async function sendRecord(call: ApiCall, code: number, record: StoredRecord): Promise<void> {
  const form = responseForm(call.request.headers.accept)
  const { definition, bytes } = call.resource
  const pretty = wantsPretty(call)
  if (form.view === 'object' && form.encoding === 'json' && !pretty) {
    sendJsonBytes(call.response, code, objectBytes(bytes, record, nothing, newline))
    return
  }
  await sendObject(call, code, decodeObject(definition.kind, record))
}

/** Sends one object that need not be stored, such as the outcome of a dry run. */
export async function sendObject(call: ApiCall, code: number, object: KubeObject): Promise<void> {
  const { view, encoding } = responseForm(call.request.headers.accept)
  const options = { encoding, pretty: wantsPretty(call) }
  await sendValue(call.response, code, objectView(call, object, view), options)
}

/** GET of one object. */
export async function handleGet(call: ApiCall): Promise<void> {
  const { store } = call.context
  const asked = call.info.query.get('resourceVersion')
  if (asked) await waitForRevision(call.context, parseResourceVersion(asked), call.signal)
  else {
    const fresh = store.freshen(call.signal)
    if (typeof fresh !== 'number') await fresh
  }
  const { kind } = call.resource.definition
  const key = keyOfCall(call)
  const record = store.get(storeKey(kind, key))
  if (!record) throw notFound(kind, key.name)
  await sendRecord(call, 200, record)
}
