import { apiVersionOf } from '../../core/index.ts'
import { atomicStructs, kinds, structs } from './generated/tables.ts'
import type { GroupVersionKind } from './schema-types.ts'
import { TableStruct } from './struct-schema.ts'

const made = new Map<string, TableStruct>()
const atomic = new Set(atomicStructs)

/** The struct of that name; made once, when first asked for. */
export function structByName(name: string): TableStruct {
  const known = made.get(name)
  if (known !== undefined) return known
  const rows = structs[name]
  if (rows === undefined) throw new Error(`the tables have no struct ${name}`)
  const struct = new TableStruct(name, rows, { atomic: atomic.has(name), find: structByName })
  made.set(name, struct)
  return struct
}

const groupVersionOf = (key: string): string => key.slice(0, key.lastIndexOf('/'))
const served = new Set(Object.keys(kinds).map(groupVersionOf))

/** Kinds that every group and version has. */
const everywhere = new Set([
  'CreateOptions',
  'DeleteOptions',
  'GetOptions',
  'ListOptions',
  'PatchOptions',
  'UpdateOptions',
  'WatchEvent',
])

/** The struct of a kind, or undefined when the kind is not one that is served. */
export function schemaOf(kind: GroupVersionKind): TableStruct | undefined {
  const groupVersion = `${kind.group}/${kind.version}`
  const shared = everywhere.has(kind.kind) && served.has(groupVersion)
  const name = shared ? `meta/v1.${kind.kind}` : kinds[`${groupVersion}/${kind.kind}`]
  return name === undefined ? undefined : structByName(name)
}

/** The struct of a kind that has routes, so that a missing one is our own mistake. */
export function structOf(kind: GroupVersionKind): TableStruct {
  const struct = schemaOf(kind)
  if (struct === undefined) throw new Error(`no field table for ${apiVersionOf(kind)} ${kind.kind}`)
  return struct
}
