import type { Seen } from './ledger.ts'

const recordOf = (value: unknown): Record<string, unknown> =>
  value instanceof Object ? Object.fromEntries(Object.entries(value)) : {}

const textIn = (record: Record<string, unknown>, key: string): string => {
  const value = record[key]
  return typeof value === 'string' ? value : ''
}

/** Reads an object of the soak; fields that are not there are empty. */
export function seenIn(object: unknown): Seen {
  const { metadata, data } = recordOf(object)
  const meta = recordOf(metadata)
  return {
    name: textIn(meta, 'name'),
    uid: textIn(meta, 'uid'),
    version: textIn(meta, 'resourceVersion'),
    serial: textIn(recordOf(data), 'serial'),
  }
}

/** Reads a line of a watch. */
export function eventIn(line: string): { readonly type: string; readonly object: Seen } {
  const event = recordOf(JSON.parse(line))
  return { type: textIn(event, 'type'), object: seenIn(event['object']) }
}

/** Reads the items of a list. */
export function itemsIn(list: unknown): Seen[] {
  const { items } = recordOf(list)
  return Array.isArray(items) ? items.map(seenIn) : []
}
