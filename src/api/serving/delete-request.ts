import { hasReason, type Kind, type KubeObject } from '../../core/index.ts'
import { deleteObject } from '../registry/delete-object.ts'
import { keyOf } from '../registry/keys.ts'
import { listObjects } from '../registry/list-objects.ts'
import { type ApiCall, keyOfCall, wantsPretty } from './api-call.ts'
import { deleteOptionsOf } from './delete-options.ts'
import { listQueryOf } from './read-list.ts'
import { sendObject } from './read-object.ts'
import { responseForm } from './response-form.ts'
import { sendValue } from './send.ts'
import { sendListView } from './send-list-view.ts'

const deletedStatus = (kind: Kind, object: KubeObject) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: {
    name: object.metadata.name,
    ...(kind.group && { group: kind.group }),
    kind: kind.resource,
    uid: object.metadata.uid,
  },
})

/** DELETE of one object: a Status when it is gone, the object while finalizers hold it. */
export async function handleDelete(call: ApiCall): Promise<void> {
  const { context, resource, user, signal } = call
  const { definition } = resource
  const { collectsDependents, ...options } = await deleteOptionsOf(call)
  const deletion = { ...options, user, signal, key: keyOfCall(call) }
  const { gone, object } = await deleteObject(context, definition, deletion)
  if (!gone || definition.returnsDeleted) {
    await sendObject(call, !gone && collectsDependents ? 202 : 200, object)
    return
  }
  const { encoding } = responseForm(call.request.headers.accept)
  const status = deletedStatus(definition.kind, object)
  await sendValue(call.response, 200, status, { encoding, pretty: wantsPretty(call) })
}

/** DELETE of a collection: deletes what the selectors mean and answers with the list of it. */
export async function handleDeleteCollection(call: ApiCall): Promise<void> {
  const { context, resource, user, signal } = call
  const { definition } = resource
  const { collectsDependents: _collects, ...options } = await deleteOptionsOf(call)
  const page = await listObjects(context, definition, listQueryOf(call), signal)
  for (const record of page.runs.flat()) {
    const key = keyOf(definition.kind, record.key)
    await deleteObject(context, definition, { ...options, user, signal, key }).catch(
      (error: unknown) => {
        if (!hasReason(error, 'NotFound')) throw error
      },
    )
  }
  await sendListView(call, page, responseForm(call.request.headers.accept))
}
