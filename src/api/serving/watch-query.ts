import { ApiError } from '../../core/index.ts'
import { parseResourceVersion } from '../registry/resource-version.ts'
import { type ApiCall, booleanParameter, wholeNumber } from './api-call.ts'

/** What a watch request asks for. */
export interface WatchQuery {
  /** Watch after this revision; `undefined` means from now. */
  readonly after: number | undefined
  /** Send the present state first, as ADDED events. */
  readonly initialState: boolean
  /** Mark the end of the initial state with a bookmark. */
  readonly initialBookmark: boolean
  readonly bookmarks: boolean
  readonly timeoutSeconds: number | undefined
}

function refuse(field: string, why: string): never {
  throw new ApiError(
    'Invalid',
    `ListOptions.meta.k8s.io "" is invalid: ${field}: Forbidden: ${why}`,
    {
      details: {
        group: 'meta.k8s.io',
        kind: 'ListOptions',
        causes: [{ reason: 'FieldValueForbidden', message: `Forbidden: ${why}`, field }],
      },
    },
  )
}

/** Reads the parameters of a watch; throws a 400 or 422. */
export function watchQueryOf(call: ApiCall): WatchQuery {
  const { query } = call.info
  const resourceVersion = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch')
  const bookmarks = booleanParameter(call, 'allowWatchBookmarks')
  const initial = query.get('sendInitialEvents')
  if (initial === null && match)
    refuse(
      'resourceVersionMatch',
      'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    )
  if (initial !== null && match !== 'NotOlderThan')
    refuse(
      'resourceVersionMatch',
      'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    )
  const revision = resourceVersion === '' ? 0 : parseResourceVersion(resourceVersion)
  const wantsInitial = initial === null ? revision === 0 : initial === 'true'
  return {
    after: revision === 0 ? undefined : revision,
    initialState: wantsInitial,
    initialBookmark: initial === 'true' && bookmarks,
    bookmarks,
    timeoutSeconds: wholeNumber(call, 'timeoutSeconds'),
  }
}
