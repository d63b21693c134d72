import { isRecord } from '../../../core/index.ts'
import { ownValue } from '../json-value.ts'
import { malformedStrategicPatch } from '../patch-errors.ts'
import {
  directivesOf,
  type Fields,
  isMarked,
  type ListDirective,
  patchMarker,
  plainFields,
  retainKeys,
  strippedFields,
  strippedList,
  valueForEmptyField,
} from './directives.ts'
import { type Identity, inOrder } from './element-order.ts'
import { identityBy, mergeList } from './merge-list.ts'
import {
  mergesLists,
  type PatchField,
  type PatchSchema,
  replacesObjects,
  schemaInside,
} from './patch-schema.ts'

/** The fields that the object keeps: all, or those that `$retainKeys` lists. */
function retained(original: Fields, patch: Fields): Map<string, unknown> {
  const entries = Object.entries(original)
  const list = ownValue(patch, retainKeys)
  if (list === undefined) return new Map(entries)
  const keys = new Set<unknown>(Array.isArray(list) ? list : [])
  const forgotten = plainFields(patch).some(([key, value]) => value !== null && !keys.has(key))
  if (!Array.isArray(list) || forgotten) {
    throw malformedStrategicPatch('invalid patch format of retainKeys')
  }
  return new Map(entries.filter(([key]) => keys.has(key)))
}

function mergedList(
  original: readonly unknown[],
  patch: readonly unknown[],
  field: PatchField | undefined,
): unknown[] {
  if (!mergesLists(field)) return strippedList(patch)
  return mergeList(original, patch, {
    mergeKey: field?.mergeKey,
    mergeElement: (before, change) => mergeObject(before, change, schemaInside(field)),
  })
}

function mergedValue(before: unknown, change: unknown, field: PatchField | undefined): unknown {
  if (Array.isArray(before) && Array.isArray(change)) return mergedList(before, change, field)
  if (isRecord(before) && isRecord(change)) {
    return replacesObjects(field)
      ? strippedFields(change)
      : mergeObject(before, change, schemaInside(field))
  }
  return valueForEmptyField(change)
}

function optionalList(value: unknown, name: string): readonly unknown[] | undefined {
  if (value === undefined || Array.isArray(value)) return value
  throw malformedStrategicPatch(`${name}: a list with an order must be a list`)
}

/** The client must name the elements that it changes in the order that it wants. */
function requireSameOrder(patch: readonly unknown[], order: readonly unknown[]): void {
  let next = 0
  for (const id of order) {
    if (next < patch.length && patch[next] === id) next += 1
  }
  if (next < patch.length && order.length > 0) {
    throw malformedStrategicPatch(
      `the order in patch list ${JSON.stringify(patch)} doesn't match $setElementOrder list ${JSON.stringify(order)}`,
    )
  }
}

/** The order that elements which the client does not name are kept in. */
function serverOrder(
  before: readonly unknown[],
  change: readonly unknown[],
  identity: Identity,
): unknown[] {
  const deleted = new Set(change.filter(isMarked).map(identity))
  const kept = before.filter((element) => !deleted.has(identity(element)))
  const known = new Set(kept.map(identity))
  const added = change.filter((element) => !isMarked(element) && !known.has(identity(element)))
  // Kubernetes lets new elements take the places of deleted ones here, and those only.
  return [...kept, ...added].slice(0, before.length)
}

function orderedList(
  before: readonly unknown[] | undefined,
  change: readonly unknown[] | undefined,
  order: readonly unknown[],
  field: PatchField | undefined,
): unknown[] {
  const identity = identityBy(field?.mergeKey)
  const changed = (change ?? []).filter((element) => !isMarked(element))
  requireSameOrder(changed.map(identity), order.map(identity))
  if (before === undefined) {
    return inOrder(changed.map(valueForEmptyField), { client: order, server: [] }, identity)
  }
  const merged = change === undefined ? before : mergedList(before, change, field)
  return inOrder(
    merged,
    { client: order, server: serverOrder(before, change ?? [], identity) },
    identity,
  )
}

/** Merges a list and puts it into the order that `$setElementOrder` states. */
function applyOrder(
  result: Map<string, unknown>,
  patch: Fields,
  directive: ListDirective,
  schema: PatchSchema | undefined,
): void {
  const name = directive.field
  const before = optionalList(result.get(name), name)
  const change = optionalList(ownValue(patch, name), name)
  if (before === undefined && change === undefined) return
  result.set(name, orderedList(before, change, directive.list, schema?.field(name)))
}

function applyDeletions(result: Map<string, unknown>, { field, list }: ListDirective): void {
  const before = result.get(field)
  if (!Array.isArray(before)) return
  const deleted = new Set(list)
  result.set(
    field,
    before.filter((element) => !deleted.has(element)),
  )
}

function mergeFields(original: Fields, patch: Fields, schema: PatchSchema | undefined): Fields {
  const result = retained(original, patch)
  const ordered = directivesOf(patch, 'order')
  for (const directive of ordered) applyOrder(result, patch, directive, schema)
  const done = new Set(ordered.map(({ field }) => field))
  for (const [key, change] of plainFields(patch)) {
    if (done.has(key)) continue
    const value =
      change === null ? undefined : mergedValue(result.get(key), change, schema?.field(key))
    if (value === undefined) result.delete(key)
    else result.set(key, value)
  }
  for (const directive of directivesOf(patch, 'deletions')) applyDeletions(result, directive)
  return Object.fromEntries(result)
}

/** Merges an object of the patch into one of the document, as its directives and the schema say. */
export function mergeObject(
  original: Fields,
  patch: Fields,
  schema: PatchSchema | undefined,
): Fields {
  const directive = ownValue(patch, patchMarker)
  switch (directive) {
    case undefined:
    case 'merge':
      return mergeFields(original, patch, schema)
    case 'replace':
      return strippedFields(patch)
    case 'delete':
      return {}
    default:
      throw malformedStrategicPatch(`unknown patch type: ${JSON.stringify(directive)}`)
  }
}
