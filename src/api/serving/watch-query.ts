import { parseResourceVersion } from '../registry/resource-version.ts'
import { type FieldProblem, forbiddenValue, notSupported } from '../validation/index.ts'
import { type ApiCall, booleanParameter, integerParameter, isTrue } from './api-call.ts'
import { refuseProblems } from './refuse-options.ts'

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

const notOlderThan = 'NotOlderThan'

/** The parameters that say where a watch begins. */
interface Beginning {
  readonly version: string
  readonly match: string
  /** `undefined` when nobody said anything about it. */
  readonly initial: boolean | undefined
}

/** A watch from no version begins with the present state, as if that had been asked for in the newer way. */
function beginningOf(query: URLSearchParams): Beginning {
  const version = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const initial = query.get('sendInitialEvents')
  if (initial !== null) return { version, match, initial: isTrue(initial) }
  const isOlderWay = match === '' && (version === '' || version === '0')
  return isOlderWay
    ? { version, match: notOlderThan, initial: true }
    : { version, match, initial: undefined }
}

function problemsOf({ match, initial }: Beginning, continues: boolean): FieldProblem[] {
  const field = 'resourceVersionMatch'
  const problems: FieldProblem[] = []
  const forbid = (why: string) => problems.push(forbiddenValue(field, why))
  if (initial !== undefined && match !== notOlderThan)
    forbid(`sendInitialEvents requires setting resourceVersionMatch to ${notOlderThan}`)
  if (initial !== undefined && continues)
    forbid('resourceVersionMatch is forbidden when continue is provided')
  if (initial === undefined && match !== '')
    forbid('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
  if (match !== '' && match !== notOlderThan)
    problems.push(notSupported(field, match, [notOlderThan]))
  return problems
}

/** Reads the parameters of a watch; throws a 400 or 422. */
export function watchQueryOf({ info }: Pick<ApiCall, 'info'>): WatchQuery {
  const { query } = info
  const timeoutSeconds = integerParameter(query, 'timeoutSeconds')
  const bookmarks = booleanParameter(query, 'allowWatchBookmarks')
  const beginning = beginningOf(query)
  refuseProblems('ListOptions', problemsOf(beginning, Boolean(query.get('continue'))))
  const { version, initial = false } = beginning
  const revision = version === '' ? 0 : parseResourceVersion(version)
  return {
    after: revision === 0 ? undefined : revision,
    initialState: initial,
    initialBookmark: initial && bookmarks,
    bookmarks,
    timeoutSeconds,
  }
}
