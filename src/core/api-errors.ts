import { ApiError, type StatusCause } from './errors.ts'
import { goQuote } from './go-quote.ts'

/** A resource as error messages name it: plural name and API group. */
export interface GroupResource {
  readonly group: string
  readonly resource: string
}

const qualified = (r: GroupResource): string => (r.group ? `${r.resource}.${r.group}` : r.resource)
const about = (r: GroupResource, name: string) => ({
  ...(name && { name }),
  ...(r.group && { group: r.group }),
  kind: r.resource,
})

/** 404: the object is not there. */
export const notFound = (resource: GroupResource, name: string): ApiError =>
  new ApiError('NotFound', `${qualified(resource)} ${goQuote(name)} not found`, {
    details: about(resource, name),
  })

/** 409: an object of that name is there already. */
export const alreadyExists = (resource: GroupResource, name: string): ApiError =>
  new ApiError('AlreadyExists', `${qualified(resource)} ${goQuote(name)} already exists`, {
    details: about(resource, name),
  })

/** 409: the object is not in the state that the request was made for. */
export const conflict = (resource: GroupResource, name: string, why: string): ApiError =>
  new ApiError(
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} ${goQuote(name)}: ${why}`,
    {
      details: about(resource, name),
    },
  )

/** 409 after a lost compare-and-swap, in the words that clients know. */
export const objectModified = (resource: GroupResource, name: string): ApiError =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )

/** 403: known who you are, and you may not. */
export const forbidden = (resource: GroupResource, name: string, why: string): ApiError =>
  new ApiError(
    'Forbidden',
    name
      ? `${qualified(resource)} ${goQuote(name)} is forbidden: ${why}`
      : `${qualified(resource)} is forbidden: ${why}`,
    { details: about(resource, name) },
  )

/** 400: the request cannot be understood. */
export const badRequest = (message: string): ApiError => new ApiError('BadRequest', message)

/** 404 for a path at which nothing is served. */
export const notServed = (): ApiError =>
  new ApiError('NotFound', 'the server could not find the requested resource', { details: {} })

/** 405: the path is there, but not for this method. */
export const methodNotAllowed = (): ApiError =>
  new ApiError(
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    { details: {} },
  )

/** 401 in the one form that tells a stranger nothing. */
export const unauthorized = (detail?: string): ApiError =>
  new ApiError('Unauthorized', 'Unauthorized', detail === undefined ? {} : { detail })

/** 422: every problem of the object at once. `kind` is the kind's name and group, not the plural. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly StatusCause[],
): ApiError {
  const lines = causes.map((cause) =>
    cause.field ? `${cause.field}: ${cause.message}` : cause.message,
  )
  const list = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  const shown = kind.group ? `${kind.kind}.${kind.group}` : kind.kind
  return new ApiError('Invalid', `${shown} ${goQuote(name)} is invalid: ${list}`, {
    details: {
      ...(name && { name }),
      ...(kind.group && { group: kind.group }),
      kind: kind.kind,
      causes,
    },
  })
}
