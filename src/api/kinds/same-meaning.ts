import { isRecord } from '../../core/index.ts'

/** Absent, null, empty text, empty list and empty object all say nothing. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.values(value).every(isNothing)
}

/** True when two JSON values say the same, whether or not they leave out what is empty. */
export function sameMeaning(a: unknown, b: unknown): boolean {
  if (isNothing(a) || isNothing(b)) return isNothing(a) && isNothing(b)
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameMeaning(item, b[index]))
  }
  if (isRecord(a) && isRecord(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)])
    return [...keys].every((key) => sameMeaning(a[key], b[key]))
  }
  return a === b
}
