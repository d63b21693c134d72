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
