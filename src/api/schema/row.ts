import { enums } from './generated/tables.ts'
import type { FieldSchema, FieldType, PatchStrategy, Topology } from './schema-types.ts'

/** What one row of the tables says; `structName` and `inline` are resolved by the struct. */
export interface RowFacts extends Omit<FieldSchema, 'struct' | 'embeddedIn'> {
  readonly structName: string | undefined
  readonly inline: boolean
}

const scalarTypes: Readonly<Record<string, FieldType>> = {
  string: 'string',
  strings: 'string',
  int32: 'integer',
  int64: 'integer',
  bool: 'boolean',
  bytes: 'bytes',
  time: 'time',
  microtime: 'microtime',
  quantity: 'quantity',
  intstr: 'intOrString',
  any: 'any',
}

const bitsOf: Readonly<Record<string, 32 | 64>> = { int32: 32, int64: 64 }

const splitList = (text: string | undefined): readonly string[] =>
  text === undefined ? [] : text.split(',')

const isTopology = (text: string | undefined): text is Topology =>
  text === 'atomic' || text === 'set' || text === 'map' || text === 'granular'

const isStrategy = (text: string): text is PatchStrategy =>
  text === 'merge' || text === 'replace' || text === 'retainKeys'

function parseDefault(text: string | undefined): FieldSchema['defaultValue'] {
  if (text === undefined) return undefined
  const value: unknown = JSON.parse(text)
  const scalar = ['string', 'number', 'boolean'].includes(typeof value)
  return scalar ? (value as string | number | boolean) : undefined
}

function defaultGoType(base: string, list: boolean, map: boolean): string {
  const dot = base.lastIndexOf('.')
  const scalar = { bytes: '[]uint8', strings: '[]string' }[base] ?? base
  const element = dot < 0 ? scalar : `v1.${base.slice(dot + 1)}`
  if (map) return `map[string]${element}`
  return list && base !== 'strings' ? `[]${element}` : element
}

/** Reads one row: name, number, type, then marks, separated by spaces. */
export function parseRow(row: string): RowFacts {
  const [name = '', number = '', type = '', ...marks] = row.split(' ')
  const has = (mark: string) => marks.includes(mark)
  const valueOf = (mark: string) =>
    marks.find((m) => m.startsWith(`${mark}=`))?.slice(mark.length + 1)
  const pointer = type.startsWith('*')
  const shape = pointer ? type.slice(1) : type
  const map = shape.startsWith('{}')
  const base = shape.replace(/^(\[\]|\{\})/, '')
  const list = shape.startsWith('[]') || base === 'strings'
  const listType = valueOf('list')
  const mapType = valueOf('map')
  const enumName = valueOf('enum')
  return {
    jsonName: name,
    number: Number(number),
    type: scalarTypes[base] ?? 'object',
    bits: bitsOf[base],
    list,
    map,
    pointer,
    wrapped: base === 'strings',
    structName: base in scalarTypes ? undefined : base,
    inline: has('inline'),
    required: has('required'),
    omitEmpty: has('omitempty'),
    omitZero: has('omitzero'),
    mergeKey: valueOf('mergeKey'),
    patchStrategy: splitList(valueOf('patch')).filter(isStrategy),
    listType: isTopology(listType) ? listType : undefined,
    listMapKeys: splitList(valueOf('listKeys')),
    mapType: isTopology(mapType) ? mapType : undefined,
    goType: valueOf('go') ?? defaultGoType(base, list, map),
    enumValues: enumName === undefined ? undefined : enums[enumName],
    defaultValue: parseDefault(valueOf('default')),
  }
}
