import { isRecord } from '../../core/index.ts'

/** A JSON object whose fields are not known yet. */
export type Fields = Record<string, unknown>

const none: Fields = Object.freeze({})

/** The object at `key`, to read from; empty when there is none. */
export function fieldsAt(parent: Fields, key: string): Fields {
  const value = parent[key]
  return isRecord(value) ? value : none
}

/** The object at `key`, to write to; made when there is none. */
export function ensureFields(parent: Fields, key: string): Fields {
  const value = parent[key]
  if (isRecord(value)) return value
  const made: Fields = {}
  parent[key] = made
  return made
}

/** The text at `key`; empty when there is none. */
export function textAt(parent: Fields, key: string): string {
  const value = parent[key]
  return typeof value === 'string' ? value : ''
}

/** The number at `key`, if there is one. */
export function numberAt(parent: Fields, key: string): number | undefined {
  const value = parent[key]
  return typeof value === 'number' ? value : undefined
}

/** The truth value at `key`; false when there is none. */
export const flagAt = (parent: Fields, key: string): boolean => parent[key] === true

/** The objects of the list at `key`; empty when there is none. */
export function recordsAt(parent: Fields, key: string): Fields[] {
  const value = parent[key]
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** The texts of the list at `key`; empty when there is none. */
export function textsAt(parent: Fields, key: string): string[] {
  const value = parent[key]
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** The map of texts at `key`; empty when there is none. */
export function textMapAt(parent: Fields, key: string): Readonly<Record<string, string>> {
  const fields = fieldsAt(parent, key)
  if (holdsTexts(fields)) return fields
  const pairs = Object.entries(fields)
  return Object.fromEntries(
    pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  )
}

function holdsTexts(fields: Fields): fields is Record<string, string> {
  for (const value of Object.values(fields)) if (typeof value !== 'string') return false
  return true
}

/** True when the field is absent or holds nothing. */
export function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

/** Sets a field that holds nothing yet. */
export function setDefault(parent: Fields, key: string, value: unknown): void {
  if (isUnset(parent[key])) parent[key] = value
}

/** Puts `value` at `key`, or removes the field when there is no value. */
export function carryOver(to: Fields, from: Fields, key: string): void {
  if (from[key] === undefined) delete to[key]
  else to[key] = from[key]
}

/** The places of the items that stand there for the second time or more. */
export function repeatedAt(items: readonly string[]): number[] {
  const seen = new Set<string>()
  return items.flatMap((item, index) => {
    if (seen.has(item)) return [index]
    seen.add(item)
    return []
  })
}
