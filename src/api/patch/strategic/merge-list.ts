import { isRecord } from '../../../core/index.ts'
import { ownValue } from '../json-value.ts'
import { malformedStrategicPatch, patchDoesNotApply } from '../patch-errors.ts'
import { type Fields, patchMarker, strippedFields } from './directives.ts'
import { type Identity, inOrder } from './element-order.ts'

/** How a list is merged: by which key, and what happens when an element is there already. */
export interface ListMerge {
  readonly mergeKey: string | undefined
  readonly mergeElement: (original: Fields, patch: Fields) => Fields
}

/** What identifies the elements of a list that merges by this key, or of one of scalars. */
export const identityBy = (mergeKey: string | undefined): Identity =>
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
export function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  merge: ListMerge,
): unknown[] {
  requireOneType([...original, ...patch])
  if (patch.some(isRecord) || original.some(isRecord)) {
    return mergeObjects(original.filter(isRecord), patch.filter(isRecord), merge)
  }
  const union = [...new Set([...original, ...patch])]
  return inOrder(union, { client: patch, server: original }, identityBy(undefined))
}
