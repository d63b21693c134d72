import { isRecord } from '../../core/index.ts'
import { malformedStrategicPatch } from './errors.ts'

/** A JSON object on its way through a patch. */
export type Fields = Readonly<Record<string, unknown>>

/** Says of the object it is in: `delete`, `replace` or `merge`. */
export const patchMarker = '$patch'
/** Lists the only keys that an object keeps. */
export const retainKeys = '$retainKeys'

/** Directives about a list that stand beside it, followed by a slash and the name of the list. */
export const listDirectives = {
  deletions: '$deleteFromPrimitiveList',
  order: '$setElementOrder',
} as const

const complaints = {
  deletions: 'invalid patch format of primitive list',
  order: 'invalid patch format of setElementOrder list',
} as const

const isDirective = (key: string): boolean =>
  key === patchMarker ||
  key === retainKeys ||
  Object.values(listDirectives).some((prefix) => key.startsWith(prefix))

/** A list directive and the field it is about. */
export interface ListDirective {
  readonly field: string
  readonly list: readonly unknown[]
}

/** All directives of one kind in an object. */
export function directivesOf(patch: Fields, kind: keyof typeof listDirectives): ListDirective[] {
  const prefix = listDirectives[kind]
  return Object.entries(patch)
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, list]) => {
      const field = key.startsWith(`${prefix}/`) ? key.slice(prefix.length + 1) : ''
      if (field === '' || !Array.isArray(list)) throw malformedStrategicPatch(complaints[kind])
      return { field, list }
    })
}

/** The fields of a patch that are not directives. */
export const plainFields = (patch: Fields): [string, unknown][] =>
  Object.entries(patch).filter(([key]) => !isDirective(key))

/** Whether a value is an object with a `$patch` directive. */
export const isMarked = (value: unknown): boolean =>
  isRecord(value) && Object.hasOwn(value, patchMarker)

function stripped(value: unknown): unknown {
  if (Array.isArray(value)) return strippedList(value)
  return isRecord(value) ? strippedFields(value) : value
}

/** A list of the patch as it is stored; marked elements only speak about others. */
export const strippedList = (list: readonly unknown[]): unknown[] =>
  list.filter((element) => !isMarked(element)).map(stripped)

/** An object of the patch as it is stored: directives and nulls are not part of it. */
export const strippedFields = (patch: Fields): Fields =>
  Object.fromEntries(
    plainFields(patch)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, stripped(value)]),
  )

/**
 * A value for a field that was empty. An object with a marker speaks about something that is not
 * there: it is left out, as in Kubernetes.
 */
export function valueForEmptyField(value: unknown): unknown {
  if (isMarked(value)) return undefined
  if (Array.isArray(value)) {
    return value.filter((item) => !isMarked(item)).map(valueForEmptyField)
  }
  if (!isRecord(value)) return value
  return Object.fromEntries(
    plainFields(value)
      .filter(([, field]) => field !== null && !isMarked(field))
      .map(([key, field]) => [key, valueForEmptyField(field)]),
  )
}

/** What a strategic merge patch must know of a field. */
export interface PatchField {
  readonly map: boolean
  /** The struct of the value, or of each element of a list or map. */
  readonly struct: PatchSchema | undefined
  /** The field by which elements of a list are recognised. */
  readonly mergeKey: string | undefined
  readonly patchStrategy: readonly string[]
}

/** What a strategic merge patch must know of a struct. */
export interface PatchSchema {
  field(jsonName: string): PatchField | undefined
}

/** The schema of what lies inside a field; `undefined` where nothing is known. */
export function schemaInside(field: PatchField | undefined): PatchSchema | undefined {
  if (!field?.map) return field?.struct
  const entry: PatchField = {
    map: false,
    struct: field.struct,
    mergeKey: undefined,
    patchStrategy: [],
  }
  return { field: () => entry }
}

/** Whether the field's lists are merged; otherwise they are replaced. */
export const mergesLists = (field: PatchField | undefined): boolean =>
  field?.patchStrategy.includes('merge') ?? false

/** Whether the field's objects are replaced; otherwise they are merged. */
export const replacesObjects = (field: PatchField | undefined): boolean =>
  field?.patchStrategy.includes('replace') ?? false
