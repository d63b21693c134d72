import {
  ApiError,
  apiVersionOf,
  invalid,
  isRecord,
  type Kind,
  type KubeObject,
  type Preconditions,
} from '../../core/index.ts'
import { type Deletion, deleteObject, type PropagationPolicy } from '../registry/delete-object.ts'
import { keyOf } from '../registry/keys.ts'
import { listObjects } from '../registry/list-objects.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import { type ApiCall, keyOfCall, wantsPretty } from './api-call.ts'
import { decodeDeleteOptions } from './decode-sent.ts'
import { listQueryOf } from './read-list.ts'
import { sendObject } from './read-object.ts'
import { responseForm } from './response-form.ts'
import { sendValue } from './send.ts'
import { isDryRun } from './write-object.ts'

const policies: readonly PropagationPolicy[] = ['Orphan', 'Background', 'Foreground']
const optionsKind = { group: 'meta.k8s.io', kind: 'DeleteOptions' }

function policyOf(options: Record<string, unknown>): PropagationPolicy | undefined {
  const policy = options['propagationPolicy']
  const orphan = options['orphanDependents']
  if (policy !== undefined && orphan !== undefined)
    throw invalid(optionsKind, '', [
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: orphanDependents and deletionPropagation cannot be both set',
        field: 'propagationPolicy',
      },
    ])
  if (orphan !== undefined) return orphan ? 'Orphan' : 'Background'
  if (policy === undefined || policy === '') return undefined
  const known = policies.find((one) => one === policy)
  if (known) return known
  throw invalid(optionsKind, '', [
    {
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(policy)}: supported values: "Foreground", "Background", "Orphan", "nil"`,
      field: 'propagationPolicy',
    },
  ])
}

function preconditionsOf(options: Record<string, unknown>): Preconditions {
  const wanted = isRecord(options['preconditions']) ? options['preconditions'] : {}
  const { uid, resourceVersion } = wanted
  return {
    ...(typeof uid === 'string' && { uid }),
    ...(typeof resourceVersion === 'string' && { resourceVersion }),
  }
}

/** The options of a deletion: from the body if there is one, else from the query. */
async function deletionOf(call: ApiCall): Promise<Omit<Deletion, 'key'>> {
  const options = await decodeDeleteOptions(call)
  const bodyDryRun = Array.isArray(options['dryRun']) && options['dryRun'].includes('All')
  const policy = policyOf({
    propagationPolicy:
      options['propagationPolicy'] ?? call.info.query.get('propagationPolicy') ?? undefined,
    orphanDependents: options['orphanDependents'] ?? orphanParameter(call),
  })
  return {
    user: call.user,
    dryRun: isDryRun(call) || bodyDryRun,
    signal: call.signal,
    preconditions: preconditionsOf(options),
    ...(policy && { propagationPolicy: policy }),
  }
}

function orphanParameter(call: ApiCall): boolean | undefined {
  const text = call.info.query.get('orphanDependents')
  return text === null ? undefined : text === 'true'
}

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
  const { definition } = call.resource
  const deletion = await deletionOf(call)
  const result = await deleteObject(call.context, definition, { ...deletion, key: keyOfCall(call) })
  if (!result.gone) {
    await sendObject(call, 200, result.object)
    return
  }
  const { encoding } = responseForm(call.request.headers.accept)
  const status = deletedStatus(definition.kind, result.object)
  await sendValue(call.response, 200, status, { encoding, pretty: wantsPretty(call) })
}

/** DELETE of a collection: deletes what the selectors mean and answers with the list of it. */
export async function handleDeleteCollection(call: ApiCall): Promise<void> {
  const { definition } = call.resource
  const { kind } = definition
  const deletion = await deletionOf(call)
  const page = await listObjects(call.context, definition, listQueryOf(call), call.signal)
  const items: Omit<KubeObject, 'kind' | 'apiVersion'>[] = []
  for (const run of page.runs) {
    for (const record of run) {
      await deleteObject(call.context, definition, {
        ...deletion,
        key: keyOf(kind, record.key),
      }).catch((error: unknown) => {
        if (!(error instanceof ApiError && error.reason === 'NotFound')) throw error
      })
      const { kind: _kind, apiVersion: _apiVersion, ...item } = decodeObject(kind, record)
      items.push(item)
    }
  }
  const list = {
    kind: `${kind.kind}List`,
    apiVersion: apiVersionOf(kind),
    metadata: {
      resourceVersion: String(page.revision),
      ...(page.continue !== undefined && { continue: page.continue }),
    },
    items,
  }
  const { encoding } = responseForm(call.request.headers.accept)
  await sendValue(call.response, 200, list, { encoding, pretty: wantsPretty(call) })
}
