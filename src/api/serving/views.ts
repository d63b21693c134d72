import { apiVersionOf, badRequest, type KubeObject } from '../../core/index.ts'
import type { ListPage } from '../registry/list-objects.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import {
  type IncludeObject,
  type ListMeta,
  renderTable,
  toPartialObjectMetadata,
  toPartialObjectMetadataList,
} from '../table/index.ts'
import type { ApiCall } from './api-call.ts'
import type { ResponseForm } from './response-form.ts'

/** How much of each object a table's rows carry; throws a 400 for what is no such amount. */
export function includeObject(call: ApiCall): IncludeObject {
  const asked = call.info.query.get('includeObject') || 'Metadata'
  if (asked === 'None' || asked === 'Object' || asked === 'Metadata') return asked
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(asked)}: must be 'Metadata', 'Object', 'None', or empty`,
  )
}

function tableOf(call: ApiCall, objects: readonly KubeObject[], listMeta: ListMeta) {
  return renderTable(call.resource.definition, objects, {
    includeObject: includeObject(call),
    listMeta,
    now: call.context.clock.now(),
    includeHeaders: call.info.query.get('includeHeaders') !== 'false',
  })
}

/** One object as its reader wants to see it. */
export function objectView(call: ApiCall, object: KubeObject, view: ResponseForm['view']): unknown {
  if (view === 'object') return object
  if (view === 'metadata') return toPartialObjectMetadata(object)
  return tableOf(call, [object], { resourceVersion: object.metadata.resourceVersion ?? '' })
}

/** The `metadata` of a page of a list. */
export function listMetaOf(page: ListPage): ListMeta {
  return {
    resourceVersion: String(page.revision),
    ...(page.continue !== undefined && { continue: page.continue }),
    ...(page.remaining !== undefined && { remainingItemCount: page.remaining }),
  }
}

/** A page of a list as its reader wants to see it. */
export function listView(call: ApiCall, page: ListPage, view: ResponseForm['view']): unknown {
  const { kind } = call.resource.definition
  const metadata = listMetaOf(page)
  const objects = page.runs.flatMap((run) => run.map((record) => decodeObject(kind, record)))
  if (view === 'table') return tableOf(call, objects, metadata)
  if (view === 'metadata') return toPartialObjectMetadataList(objects, metadata)
  const items = objects.map(({ kind: _kind, apiVersion: _apiVersion, ...rest }) => rest)
  return { kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata, items }
}
