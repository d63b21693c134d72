/** The name of a kind in the API: group (empty for the core group), version and kind. */
export interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** What one value of a field is, in JSON's terms where Kubernetes has no special form for it. */
export type FieldType =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'bytes'
  | 'time'
  | 'microtime'
  | 'quantity'
  | 'intOrString'
  | 'object'
  | 'any'

/** How a strategic merge patch treats a field. */
export type PatchStrategy = 'merge' | 'replace' | 'retainKeys'

/** How the parts of a list or map belong together. */
export type Topology = 'atomic' | 'set' | 'map' | 'granular'

/** One field of a struct. `list` and `map` together mean a map of lists. */
export interface FieldSchema {
  readonly jsonName: string
  /** The type of the value, or of each element of the list or map. */
  readonly type: FieldType
  /** 32 or 64 for an integer, otherwise undefined. */
  readonly bits: 32 | 64 | undefined
  readonly list: boolean
  readonly map: boolean
  /** The struct of an `object`. */
  readonly struct: StructSchema | undefined
  readonly mergeKey: string | undefined
  readonly patchStrategy: readonly PatchStrategy[]
  /** Clients must send it, as the OpenAPI document says. */
  readonly required: boolean
  /** An empty value is left out of the JSON form. */
  readonly omitEmpty: boolean
  /** A zero struct is left out of the JSON form. */
  readonly omitZero: boolean
  /** Absent and zero are different values. */
  readonly pointer: boolean
  /** The field number in protobuf; fields of an inlined struct count in that struct's message. */
  readonly number: number
  /** The list is a protobuf message of its own around its items. */
  readonly wrapped: boolean
  /** The type in Go's notation, without the pointer; error messages show it. */
  readonly goType: string
  /** Go names of the inlined structs on the way to this field; error messages show them. */
  readonly embeddedIn: readonly string[]
  readonly listType: Topology | undefined
  readonly listMapKeys: readonly string[]
  readonly mapType: Topology | undefined
  readonly enumValues: readonly string[] | undefined
  readonly defaultValue: string | number | boolean | undefined
}

/** The fields of one struct of the Kubernetes API, with inlined structs laid out flat. */
export interface StructSchema {
  /** Unique, for example `core/v1.PodSpec`. */
  readonly name: string
  /** The bare name, for example `PodSpec`. */
  readonly shortName: string
  /** The whole struct is replaced by an apply, never merged. */
  readonly atomic: boolean
  /** How many fields it has. */
  readonly size: number
  field(jsonName: string): FieldSchema | undefined
  /** All fields, in the order in which Kubernetes writes them. */
  fields(): Iterable<FieldSchema>
}
