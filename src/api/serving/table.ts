import type { KubeObject, ObjectMeta } from '../../core/index.ts'
import type { Column, KindDefinition, RowCondition } from '../kinds/define-kind.ts'

/** The `metadata` of a list. */
export interface ListMeta {
  readonly resourceVersion?: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

/** How much of each object a row carries. */
export type IncludeObject = 'None' | 'Metadata' | 'Object'

/** How to render a Table. */
export interface TableOptions {
  /** What the query parameter asks for; without one it is `Metadata`. */
  readonly includeObject: IncludeObject
  readonly listMeta: ListMeta
  /** Epoch milliseconds, for ages. */
  readonly now: number
  /** False for every event of a watch but the first. */
  readonly includeHeaders: boolean
}

interface ColumnDefinition {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
}

interface TableRow {
  readonly cells: readonly (string | number | boolean | null)[]
  readonly conditions?: readonly RowCondition[]
  readonly object: KubeObject | PartialObjectMetadata | null
}

/** Objects as rows and columns, for people: what `kubectl get` asks for. */
export interface Table {
  readonly kind: 'Table'
  readonly apiVersion: 'meta.k8s.io/v1'
  readonly metadata: ListMeta
  readonly columnDefinitions: readonly ColumnDefinition[] | null
  readonly rows: readonly TableRow[]
}

/** An object reduced to its metadata. */
export interface PartialObjectMetadata {
  readonly kind: 'PartialObjectMetadata'
  readonly apiVersion: 'meta.k8s.io/v1'
  readonly metadata: ObjectMeta
}

/** Leaves nothing of the object but its metadata. */
export const toPartialObjectMetadata = (object: KubeObject): PartialObjectMetadata => ({
  kind: 'PartialObjectMetadata',
  apiVersion: 'meta.k8s.io/v1',
  metadata: object.metadata,
})

/** A list of objects reduced to their metadata. */
export interface PartialObjectMetadataList {
  readonly kind: 'PartialObjectMetadataList'
  readonly apiVersion: 'meta.k8s.io/v1'
  readonly metadata: ListMeta
  readonly items: readonly PartialObjectMetadata[]
}

/** Leaves nothing of each object but its metadata. */
export const toPartialObjectMetadataList = (
  objects: readonly KubeObject[],
  listMeta: ListMeta,
): PartialObjectMetadataList => ({
  kind: 'PartialObjectMetadataList',
  apiVersion: 'meta.k8s.io/v1',
  metadata: listMeta,
  items: objects.map(toPartialObjectMetadata),
})

const headerOf = (column: Column): ColumnDefinition => ({
  name: column.name,
  type: column.type,
  format: column.format ?? '',
  description: column.description,
  priority: column.priority ?? 0,
})

const carried: Readonly<Record<IncludeObject, (object: KubeObject) => TableRow['object']>> = {
  None: () => null,
  Metadata: toPartialObjectMetadata,
  Object: (object) => object,
}

/** How objects of a kind become rows. */
export type RowShape = Pick<KindDefinition, 'columns' | 'rowConditions'>

function rowOf(definition: RowShape, object: KubeObject, options: TableOptions): TableRow {
  const conditions = definition.rowConditions?.(object) ?? []
  return {
    cells: definition.columns.map((column) => column.cell(object, options.now)),
    ...(conditions.length > 0 && { conditions }),
    object: carried[options.includeObject](object),
  }
}

/** Renders a list of objects, a single one or the object of a watch event. */
export const renderTable = (
  definition: RowShape,
  objects: readonly KubeObject[],
  options: TableOptions,
): Table => ({
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata: options.listMeta,
  columnDefinitions: options.includeHeaders ? definition.columns.map(headerOf) : null,
  rows: objects.map((object) => rowOf(definition, object, options)),
})
