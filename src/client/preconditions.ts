import type { Preconditions } from '../core/index.ts'

/** Only the preconditions that are given: an empty one would never hold. */
export const statedPreconditions = (given: {
  readonly resourceVersion?: string | undefined
  readonly uid?: string | undefined
}): Preconditions => ({
  ...(given.resourceVersion !== undefined && { resourceVersion: given.resourceVersion }),
  ...(given.uid !== undefined && { uid: given.uid }),
})
