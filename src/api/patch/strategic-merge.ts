import { isRecord, type Work } from '../../core/index.ts'
import { malformedStrategicPatch, ownValue, patchDoesNotApply } from './errors.ts'
import {
  directivesOf,
  type Fields,
  isMarked,
  type ListDirective,
  mergesLists,
  type PatchField,
  type PatchSchema,
  patchMarker,
  plainFields,
  replacesObjects,
  retainKeys,
  schemaInside,
  strippedFields,
  strippedList,
  valueForEmptyField,
} from './strategic-directives.ts'

/** What identifies an element of a list: its merge key's value, or a scalar itself. */
type Identity = (element: unknown) => unknown

/** Position of each identity; the first one counts. */
function positions(list: readonly unknown[], identity: Identity): Map<unknown, number> {
  const found = new Map<unknown, number>()
  for (const [index, element] of list.entries()) {
    const id = identity(element)
    if (!found.has(id)) found.set(id, index)
  }
  return found
}

const sortedBy = (list: unknown[], order: Map<unknown, number>, identity: Identity): unknown[] =>
  list.toSorted(
    (a, b) => (order.get(identity(a)) ?? order.size) - (order.get(identity(b)) ?? order.size),
  )

/**
 * Puts a merged list in order. Elements that the client named come in the client's order; the others
 * keep the order they had; each of the others goes before the first named one that it preceded.
 */
function inOrder(
  merged: readonly unknown[],
  orders: { readonly client: readonly unknown[]; readonly server: readonly unknown[] },
  identity: Identity,
): unknown[] {
  const clientOrder = positions(orders.client, identity)
  const serverOrder = positions(orders.server, identity)
  const isNamed = (element: unknown): boolean => clientOrder.has(identity(element))
  const named = sortedBy(merged.filter(isNamed), clientOrder, identity)
  const others = sortedBy(
    merged.filter((element) => !isNamed(element)),
    serverOrder,
    identity,
  )
  const precedes = (a: unknown, b: unknown): boolean => {
    const [first, second] = [serverOrder.get(identity(a)), serverOrder.get(identity(b))]
    return first !== undefined && second !== undefined && first < second
  }
  const result: unknown[] = []
  let next = 0
  for (const element of named) {
    while (next < others.length && precedes(others[next], element)) {
      result.push(others[next])
      next += 1
    }
    result.push(element)
  }
  return [...result, ...others.slice(next)]
}

/** How a list is merged: by which key, and what happens when an element is there already. */
interface ListMerge {
  readonly mergeKey: string | undefined
  readonly mergeElement: (original: Fields, patch: Fields) => Fields
  readonly work: Work
}

/** What identifies the elements of a list that merges by this key, or of one of scalars. */
const identityBy = (mergeKey: string | undefined): Identity =>
  mergeKey === undefined
    ? (element) => element
    : (element) => (isRecord(element) ? ownValue(element, mergeKey) : undefined)

function requireOneType(elements: readonly unknown[]): void {
  if (elements.some((element) => Array.isArray(element))) {
    throw patchDoesNotApply('lists of lists are not supported')
  }
  const types = new Set(elements.map((element) => (element === null ? 'null' : typeof element)))
  if (types.size > 1 || types.has('null')) {
    throw malformedStrategicPatch(`list element types are not identical: ${[...types].join(', ')}`)
  }
}

function keyOfElement(element: Fields, mergeKey: string): unknown {
  const key = ownValue(element, mergeKey)
  if (key === undefined) {
    throw malformedStrategicPatch(
      `${JSON.stringify(element)} does not contain declared merge key: ${mergeKey}`,
    )
  }
  return key
}

/** What the elements of a patch list ask for, one by one. */
interface ListChanges {
  readonly replace: boolean
  readonly deleted: ReadonlySet<unknown>
  readonly elements: readonly Fields[]
}

function changesOf(patch: readonly Fields[], mergeKey: string): ListChanges {
  const deleted = new Set<unknown>()
  const elements: Fields[] = []
  let replace = false
  for (const element of patch) {
    switch (ownValue(element, patchMarker)) {
      case undefined:
        elements.push(element)
        break
      case 'delete':
        deleted.add(keyOfElement(element, mergeKey))
        break
      case 'replace':
        replace = true
        break
      case 'merge': {
        const { [patchMarker]: _, ...rest } = element
        if (Object.keys(rest).length > 0) elements.push(rest)
        break
      }
      default:
        throw malformedStrategicPatch(`unknown patch type: ${JSON.stringify(element[patchMarker])}`)
    }
  }
  return { replace, deleted, elements }
}

function mergeObjects(
  original: readonly Fields[],
  patch: readonly Fields[],
  { mergeKey, mergeElement }: ListMerge,
): unknown[] {
  if (mergeKey === undefined) throw patchDoesNotApply('this list has no merge key')
  const { replace, deleted, elements } = changesOf(patch, mergeKey)
  if (replace) return elements.map(strippedFields)
  const kept = original.filter((element) => !deleted.has(ownValue(element, mergeKey)))
  const merged = [...kept]
  const places = new Map<unknown, number>()
  for (const [index, element] of kept.entries()) {
    const key = ownValue(element, mergeKey)
    if (!places.has(key)) places.set(key, index)
  }
  for (const element of elements) {
    const key = keyOfElement(element, mergeKey)
    const at = places.get(key) ?? merged.length
    const before = merged[at]
    merged[at] = before === undefined ? strippedFields(element) : mergeElement(before, element)
    places.set(key, at)
  }
  return inOrder(merged, { client: elements, server: kept }, identityBy(mergeKey))
}

/** Merges a list of the patch into one of the object: scalars as a set, objects by their key. */
function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  merge: ListMerge,
): unknown[] {
  merge.work.spend('operations', original.length + patch.length)
  requireOneType([...original, ...patch])
  if (patch.some(isRecord) || original.some(isRecord)) {
    return mergeObjects(original.filter(isRecord), patch.filter(isRecord), merge)
  }
  const union = [...new Set([...original, ...patch])]
  return inOrder(union, { client: patch, server: original }, identityBy(undefined))
}

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
  work: Work,
): unknown[] {
  if (!mergesLists(field)) return strippedList(patch)
  return mergeList(original, patch, {
    mergeKey: field?.mergeKey,
    mergeElement: (before, change) => mergeObject(before, change, schemaInside(field), work),
    work,
  })
}

function mergedValue(
  before: unknown,
  change: unknown,
  field: PatchField | undefined,
  work: Work,
): unknown {
  if (Array.isArray(before) && Array.isArray(change)) return mergedList(before, change, field, work)
  if (isRecord(before) && isRecord(change)) {
    return replacesObjects(field)
      ? strippedFields(change)
      : mergeObject(before, change, schemaInside(field), work)
  }
  return valueForEmptyField(change)
}

function optionalList(value: unknown, name: string): readonly unknown[] | undefined {
  if (value === undefined || Array.isArray(value)) return value
  throw malformedStrategicPatch(`${name}: a list with an order must be a list`)
}

const maxQuoted = 20

const quotedList = (list: readonly unknown[]): string =>
  JSON.stringify(list.length > maxQuoted ? [...list.slice(0, maxQuoted), '...'] : list)

/** The client must name the elements that it changes in the order that it wants. */
function requireSameOrder(patch: readonly unknown[], order: readonly unknown[]): void {
  let next = 0
  for (const id of order) {
    if (next < patch.length && patch[next] === id) next += 1
  }
  if (next < patch.length && order.length > 0) {
    throw malformedStrategicPatch(
      `the order in patch list ${quotedList(patch)} doesn't match $setElementOrder list ${quotedList(order)}`,
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

/** The lists of an object and of its patch, and the order that both are to have. */
interface OrderedLists {
  readonly before: readonly unknown[] | undefined
  readonly change: readonly unknown[] | undefined
  readonly order: readonly unknown[]
}

function orderedList(
  { before, change, order }: OrderedLists,
  field: PatchField | undefined,
  work: Work,
): unknown[] {
  work.spend('operations', (before?.length ?? 0) + (change?.length ?? 0) + order.length)
  const identity = identityBy(field?.mergeKey)
  const changed = (change ?? []).filter((element) => !isMarked(element))
  requireSameOrder(changed.map(identity), order.map(identity))
  if (before === undefined) {
    return inOrder(changed.map(valueForEmptyField), { client: order, server: [] }, identity)
  }
  const merged = change === undefined ? before : mergedList(before, change, field, work)
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
  { field: name, list: order }: ListDirective,
  { schema, work }: { readonly schema: PatchSchema | undefined; readonly work: Work },
): void {
  const before = optionalList(result.get(name), name)
  const change = optionalList(ownValue(patch, name), name)
  if (before === undefined && change === undefined) return
  result.set(name, orderedList({ before, change, order }, schema?.field(name), work))
}

function applyDeletions(
  result: Map<string, unknown>,
  { field, list }: ListDirective,
  work: Work,
): void {
  const before = result.get(field)
  if (!Array.isArray(before)) return
  work.spend('operations', before.length + list.length)
  const deleted = new Set(list)
  result.set(
    field,
    before.filter((element) => !deleted.has(element)),
  )
}

function mergeFields(
  original: Fields,
  patch: Fields,
  schema: PatchSchema | undefined,
  work: Work,
): Fields {
  work.spend('operations', Object.keys(original).length + Object.keys(patch).length)
  const result = retained(original, patch)
  const ordered = directivesOf(patch, 'order')
  for (const directive of ordered) applyOrder(result, patch, directive, { schema, work })
  const done = new Set(ordered.map(({ field }) => field))
  for (const [key, change] of plainFields(patch)) {
    if (done.has(key)) continue
    const value =
      change === null ? undefined : mergedValue(result.get(key), change, schema?.field(key), work)
    if (value === undefined) result.delete(key)
    else result.set(key, value)
  }
  for (const directive of directivesOf(patch, 'deletions')) applyDeletions(result, directive, work)
  return Object.fromEntries(result)
}

/** Merges an object of the patch into one of the document, as its directives and the schema say. */
function mergeObject(
  original: Fields,
  patch: Fields,
  schema: PatchSchema | undefined,
  work: Work,
): Fields {
  const directive = ownValue(patch, patchMarker)
  switch (directive) {
    case undefined:
    case 'merge':
      return mergeFields(original, patch, schema, work)
    case 'replace':
      return strippedFields(patch)
    case 'delete':
      return {}
    default:
      throw malformedStrategicPatch(`unknown patch type: ${JSON.stringify(directive)}`)
  }
}

/** Kubernetes' own patch: as a merge patch, but the schema says which lists merge and by which key. */
export function applyStrategicMergePatch(
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  schema: PatchSchema,
  work: Work,
): unknown {
  if (!isRecord(patch)) throw malformedStrategicPatch('a strategic merge patch is an object')
  return mergeObject(original, patch, schema, work)
}
