import { ApiError, badRequest } from '../../core/index.ts'

/** 400: the patch itself cannot be understood, whatever it is applied to. */
export const malformedPatch = (why: string): ApiError => badRequest(`error decoding patch: ${why}`)

/** 400 for a strategic merge patch, which Kubernetes decodes on its way: without the words before. */
export const malformedStrategicPatch = (why: string): ApiError => badRequest(why)

/** 422: the patch is well formed but does not fit the object as it is. */
export const patchDoesNotApply = (why: string): ApiError =>
  new ApiError(
    'Invalid',
    // The words before the colon are all that Kubernetes says.
    `the server rejected our request due to an error in our request: ${why}`,
    { details: {} },
  )
