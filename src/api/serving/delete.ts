import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  hasReason,
  isRecord,
  type Kind,
  type KubeObject,
  type Preconditions,
} from '../../core/index.ts'
import { textsAt } from '../kinds/fields.ts'
import { deleteObject, type PropagationPolicy } from '../registry/delete.ts'
import { listObjects } from '../registry/list.ts'
import { keyOf } from '../registry/object-bytes.ts'
import { type FieldProblem, invalidValue, notSupported } from '../validation/index.ts'
import {
  type ApiCall,
  dryRunProblems,
  integerParameter,
  isTrue,
  keyOfCall,
  refuseProblems,
  wantsPretty,
} from './call.ts'
import { sendObject } from './get.ts'
import { listQueryOf, sendListView } from './list.ts'
import { responseForm, sendValue } from './response.ts'
import { decodeDeleteOptions } from './write.ts'

/** What somebody who deletes may ask for. */
interface DeleteOptions {
  readonly dryRun: boolean
  readonly preconditions: Preconditions
  readonly propagationPolicy?: PropagationPolicy
  /** True for the old way to ask that dependents are collected, which has an answer of its own. */
  readonly collectsDependents: boolean
}

/** The options as they were sent, wherever they stood. */
interface RawOptions {
  readonly policy: string | undefined
  readonly orphan: boolean | undefined
  readonly dryRun: readonly string[]
  readonly preconditions: Preconditions
}

const policies: readonly PropagationPolicy[] = ['Foreground', 'Background', 'Orphan']

function preconditionsOf(wanted: unknown): Preconditions {
  if (!isRecord(wanted)) return {}
  const { uid, resourceVersion } = wanted
  return {
    ...(typeof uid === 'string' && { uid }),
    ...(typeof resourceVersion === 'string' && { resourceVersion }),
  }
}

function fromBody(body: Record<string, unknown>, queryDryRun: readonly string[]): RawOptions {
  const { propagationPolicy: policy, orphanDependents: orphan, preconditions } = body
  return {
    policy: typeof policy === 'string' ? policy : undefined,
    orphan: typeof orphan === 'boolean' ? orphan : undefined,
    // A body makes Kubernetes forget the query, and so delete what was asked about in a dry run.
    dryRun: [...textsAt(body, 'dryRun'), ...queryDryRun],
    preconditions: preconditionsOf(preconditions),
  }
}

function fromQuery(query: URLSearchParams): RawOptions {
  integerParameter(query, 'gracePeriodSeconds')
  const orphan = query.get('orphanDependents')
  return {
    policy: query.get('propagationPolicy') ?? undefined,
    orphan: orphan === null ? undefined : isTrue(orphan),
    dryRun: query.getAll('dryRun'),
    preconditions: {},
  }
}

function policyProblems({ policy, orphan }: RawOptions): FieldProblem[] {
  const field = 'propagationPolicy'
  if (policy === undefined) return []
  const both = 'orphanDependents and deletionPropagation cannot be both set'
  return [
    ...(orphan === undefined ? [] : [invalidValue(field, policy, both)]),
    ...(policies.some((known) => known === policy)
      ? []
      : [notSupported(field, policy, [...policies, 'nil'])]),
  ]
}

function policyOf({ policy, orphan }: RawOptions): PropagationPolicy | undefined {
  if (orphan !== undefined) return orphan ? 'Orphan' : 'Background'
  return policies.find((known) => known === policy)
}

/** The options of a deletion, from the body if there is one, else from the query; throws a 400 or 422. */
async function deleteOptionsOf(call: ApiCall): Promise<DeleteOptions> {
  const { query } = call.info
  const body = await decodeDeleteOptions(call)
  const raw = body ? fromBody(body, query.getAll('dryRun')) : fromQuery(query)
  refuseProblems('DeleteOptions', [...policyProblems(raw), ...dryRunProblems(raw.dryRun)])
  const propagationPolicy = policyOf(raw)
  return {
    dryRun: raw.dryRun.length > 0,
    preconditions: raw.preconditions,
    collectsDependents: raw.orphan === false,
    ...(propagationPolicy && { propagationPolicy }),
  }
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

/** After so many deletions, everybody else gets a turn. */
const deletionsPerTurn = 32

/** DELETE of a collection: deletes what the selectors mean and answers with the list of it. */
export async function handleDeleteCollection(call: ApiCall): Promise<void> {
  const { context, resource, user, signal } = call
  const { definition } = resource
  const { collectsDependents: _collects, ...options } = await deleteOptionsOf(call)
  const page = await listObjects(context, definition, listQueryOf(call), signal)
  for (const [index, record] of page.runs.flat().entries()) {
    if ((index + 1) % deletionsPerTurn === 0) await nextTurn()
    const key = keyOf(definition.kind, record.key)
    await deleteObject(context, definition, { ...options, user, signal, key }).catch(
      (error: unknown) => {
        if (!hasReason(error, 'NotFound')) throw error
      },
    )
  }
  await sendListView(call, page, responseForm(call.request.headers.accept))
}
