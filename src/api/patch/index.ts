export { applyPatch, type PatchType, patchMediaTypes, patchTypeOf } from './apply-patch.ts'
export type { PatchSchema } from './strategic-directives.ts'
