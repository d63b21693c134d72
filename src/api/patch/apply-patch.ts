import { ApiError, isRecord, type Work } from '../../core/index.ts'
import { deepCopy, malformedPatch, patchDoesNotApply } from './errors.ts'
import { applyJsonPatch } from './json-patch.ts'
import type { PatchSchema } from './strategic-directives.ts'
import { applyStrategicMergePatch } from './strategic-merge.ts'

/** The kinds of patch that can be applied. */
export type PatchType = 'json' | 'merge' | 'strategic'

/** The media type that announces each kind of patch. */
export const patchMediaTypes = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
} as const satisfies Readonly<Record<string, PatchType>>

const known: ReadonlyMap<string, PatchType> = new Map(Object.entries(patchMediaTypes))

const applySentence =
  'server-side apply is not supported here: run `kubectl apply` without --server-side ' +
  '(client-side apply), or send one of these patch types instead'

/** The kind of patch that a Content-Type header announces; throws a 415 that names the way out. */
export function patchTypeOf(contentType: string | undefined): PatchType {
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const type = known.get(mediaType)
  if (type !== undefined) return type
  const accepted = [...known.keys()].join(', ')
  const problem = mediaType.startsWith('application/apply-patch+')
    ? `${applySentence}: ${accepted}`
    : `the body of the request was in an unknown format - accepted media types include: ${accepted}`
  throw new ApiError('UnsupportedMediaType', problem)
}

function merged(target: unknown, patch: unknown, work: Work): unknown {
  if (!isRecord(patch)) return patch
  const result = new Map(isRecord(target) ? Object.entries(target) : [])
  const changes = Object.entries(patch)
  work.spend('operations', result.size + changes.length)
  for (const [key, value] of changes) {
    if (value === null) result.delete(key)
    else result.set(key, merged(result.get(key), value, work))
  }
  return Object.fromEntries(result)
}

/** RFC 7396: objects merge, null deletes, everything else replaces. */
function applyMergePatch(
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  work: Work,
): unknown {
  if (!isRecord(patch)) throw malformedPatch('a merge patch is an object')
  return merged(original, patch, work)
}

/** What a patch is applied with. */
export interface PatchContext {
  readonly schema: PatchSchema
  readonly work: Work
}

function patched(
  type: PatchType,
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  { schema, work }: PatchContext,
): unknown {
  switch (type) {
    case 'json':
      return applyJsonPatch(patch, original, work)
    case 'merge':
      return deepCopy(applyMergePatch(patch, original, work), work)
    case 'strategic':
      return deepCopy(applyStrategicMergePatch(patch, original, schema, work), work)
  }
}

/**
 * The object as the patch wants it. Neither `patch` nor `original` is changed, and the result shares
 * nothing with them. Throws a 400 for a malformed patch and a 422 for one that does not fit, and
 * stops at the limits of `work`.
 */
export function applyPatch(
  type: PatchType,
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  context: PatchContext,
): Record<string, unknown> {
  const result = patched(type, patch, original, context)
  if (!isRecord(result)) throw patchDoesNotApply('the patch does not leave an object')
  return result
}
