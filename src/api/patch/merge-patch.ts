import { isRecord } from '../../core/index.ts'
import { malformedPatch } from './patch-errors.ts'

function merged(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result = new Map(isRecord(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key)
    else result.set(key, merged(result.get(key), value))
  }
  return Object.fromEntries(result)
}

/** RFC 7396: objects merge, null deletes, everything else replaces. */
export function applyMergePatch(
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
): unknown {
  if (!isRecord(patch)) throw malformedPatch('a merge patch is an object')
  return merged(original, patch)
}
