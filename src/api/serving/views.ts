import { apiVersionOf, badRequest, type KubeObject } from '../../core/index.ts'
import type { ListPage } from '../registry/list.ts'
import type { ApiCall } from './call.ts'
import type { ResponseForm } from './response.ts'
import {
  type IncludeObject,
  type ListMeta,
  renderTable,
  toPartialObjectMetadata,
  toPartialObjectMetadataList,
} from './table.ts'

/** How much of each object a table's rows carry; throws a 400 for what is no such amount. */
export function includeObject(call: Pick<ApiCall, 'info'>): IncludeObject {
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

/** A list as its reader wants to see it: all but its items, what the items are called, and each item. */
export interface ListView {
  readonly frame: Readonly<Record<string, unknown>>
  readonly itemsField: 'items' | 'rows'
  readonly itemOf: (object: KubeObject) => unknown
}

/** How a page of a list is to be shown. */
export function listView(call: ApiCall, page: ListPage, view: ResponseForm['view']): ListView {
  const { kind } = call.resource.definition
  const metadata = listMetaOf(page)
  if (view === 'table') {
    const { rows: _none, ...frame } = tableOf(call, [], metadata)
    return { frame, itemsField: 'rows', itemOf: (object) => tableOf(call, [object], {}).rows[0] }
  }
  if (view === 'metadata') {
    const { items: _none, ...frame } = toPartialObjectMetadataList([], metadata)
    return { frame, itemsField: 'items', itemOf: toPartialObjectMetadata }
  }
  return {
    frame: { kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata },
    itemsField: 'items',
    itemOf: ({ kind: _kind, apiVersion: _apiVersion, ...rest }) => rest,
  }
}
