import { isRecord } from '../../core/index.ts'
import { applyJsonPatch } from './json-patch.ts'
import { deepCopy } from './json-value.ts'
import type { PatchType } from './media-types.ts'
import { applyMergePatch } from './merge-patch.ts'
import { patchDoesNotApply } from './patch-errors.ts'
import type { PatchSchema } from './strategic/patch-schema.ts'
import { applyStrategicMergePatch } from './strategic-merge-patch.ts'

function patched(
  type: PatchType,
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  schema: PatchSchema,
): unknown {
  switch (type) {
    case 'json':
      return applyJsonPatch(patch, original)
    case 'merge':
      return deepCopy(applyMergePatch(patch, original))
    case 'strategic':
      return deepCopy(applyStrategicMergePatch(patch, original, schema))
  }
}

/**
 * The object as the patch wants it. Neither `patch` nor `original` is changed, and the result shares
 * nothing with them. Throws a 400 for a malformed patch and a 422 for one that does not fit.
 */
export function applyPatch(
  type: PatchType,
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  schema: PatchSchema,
): Record<string, unknown> {
  const result = patched(type, patch, original, schema)
  if (!isRecord(result)) throw patchDoesNotApply('the patch does not leave an object')
  return result
}
