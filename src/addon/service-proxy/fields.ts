import { isRecord } from '../../core/index.ts'

/** An object of the API whose fields are still to be looked at. */
export type Fields = Readonly<Record<string, unknown>>

/** The object in a field; an empty one if there is none. */
export function fieldsAt(object: Fields, name: string): Fields {
  const value = object[name]
  return isRecord(value) ? value : {}
}

/** The objects in a list; none if it is no list. */
export function listAt(object: Fields, name: string): Fields[] {
  const value = object[name]
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** The texts in a list; none if it is no list. */
export function textsAt(object: Fields, name: string): string[] {
  const value = object[name]
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

/** The text in a field; empty if there is none. */
export function textAt(object: Fields, name: string): string {
  const value = object[name]
  return typeof value === 'string' ? value : ''
}

/** The number in a field. */
export function numberAt(object: Fields, name: string): number | undefined {
  const value = object[name]
  return typeof value === 'number' ? value : undefined
}
