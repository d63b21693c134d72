export { applyPatch } from './apply-patch.ts'
export { type PatchType, patchMediaTypes, patchTypeOf } from './media-types.ts'
export type { PatchSchema } from './strategic/patch-schema.ts'
