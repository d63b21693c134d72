import { ApiError } from '../../core/index.ts'

/** The encodings of a request body that are understood, as error messages list them. */
export const supportedMediaTypes = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
] as const

/** One of the encodings that are understood. */
type BodyMediaType = (typeof supportedMediaTypes)[number]

/** The error for a body in an encoding that is not among `accepted`. */
const unsupportedMediaType = (accepted: readonly string[]): ApiError =>
  new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

/** The encoding that a Content-Type header names; none means JSON. */
export function bodyMediaType(contentType: string | undefined): BodyMediaType {
  const named = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const found = named === '' ? supportedMediaTypes[0] : supportedMediaTypes.find((m) => m === named)
  if (found === undefined) throw unsupportedMediaType(supportedMediaTypes)
  return found
}
