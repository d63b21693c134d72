import { isRecord } from '../../core/index.ts'
import { malformedStrategicPatch } from './patch-errors.ts'
import { mergeObject } from './strategic/merge-object.ts'
import type { PatchSchema } from './strategic/patch-schema.ts'

/** Kubernetes' own patch: as a merge patch, but the schema says which lists merge and by which key. */
export function applyStrategicMergePatch(
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  schema: PatchSchema,
): unknown {
  if (!isRecord(patch)) throw malformedStrategicPatch('a strategic merge patch is an object')
  return mergeObject(original, patch, schema)
}
