import { ApiError, badRequest, isRecord, type Work } from '../../core/index.ts'

/** 400: the patch itself cannot be understood, whatever it is applied to. */
export const malformedPatch = (why: string): ApiError => badRequest(`error decoding patch: ${why}`)

/** 400 for a strategic merge patch, which Kubernetes decodes on its way: without the words before. */
export const malformedStrategicPatch = (why: string): ApiError => badRequest(why)

/** A text of the patch as messages quote it: whole only if it is short. */
export const quoted = (text: string): string =>
  JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}...` : text)

/** 422: the patch is well formed but does not fit the object as it is. */
export const patchDoesNotApply = (why: string): ApiError =>
  new ApiError(
    'Invalid',
    // The words before the colon are all that Kubernetes says.
    `the server rejected our request due to an error in our request: ${why}`,
    { details: {} },
  )

/** A copy that shares nothing with `value`; a key `__proto__` stays an ordinary key. */
export function deepCopy(value: unknown, work: Work): unknown {
  if (Array.isArray(value)) {
    work.spend('operations', value.length)
    return value.map((item) => deepCopy(item, work))
  }
  if (!isRecord(value)) return value
  const entries = Object.entries(value)
  work.spend('operations', entries.length)
  return Object.fromEntries(entries.map(([key, field]) => [key, deepCopy(field, work)]))
}

/** Whether two JSON values are the same; the order of keys does not count. */
export function jsonEqual(a: unknown, b: unknown, work?: Work): boolean {
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    work?.spend('operations', a.length)
    return a.every((item, index) => jsonEqual(item, b[index], work))
  }
  if (isRecord(a)) {
    if (!isRecord(b)) return false
    const keys = Object.keys(a)
    work?.spend('operations', keys.length)
    if (keys.length !== Object.keys(b).length) return false
    return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key], work))
  }
  return a === b
}

/** How many containers lie inside each other. Never recurses, so that it can judge any value. */
export function depthOf(value: unknown, work: Work): number {
  let depth = 0
  let level: unknown[] = [value]
  for (;;) {
    work.spend('operations', level.length)
    level = level.flatMap((item) => {
      if (Array.isArray(item)) return [item]
      return isRecord(item) ? [Object.values(item)] : []
    })
    if (level.length === 0) return depth
    depth += 1
    level = level.flat()
  }
}

/** The value under a key that the object itself has; `undefined` when it has none. */
export const ownValue = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
