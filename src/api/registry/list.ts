import { setImmediate as nextTurn } from 'node:timers/promises'
import { ApiError, badRequest, invalid, isRecord, type Query } from '../../core/index.ts'
import {
  type Range,
  type RangeOptions,
  RevisionCompacted,
  RevisionUnknown,
  type StoredRecord,
} from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { type FieldProblem, forbiddenValue, notSupported, toCause } from '../validation/index.ts'
import { storePrefix } from './object-bytes.ts'
import type { RegistryContext } from './registry.ts'
import { parseResourceVersion, tooLarge, waitForRevision } from './resource-version.ts'
import { type Selection, selectionOf } from './selection.ts'

/** Where the next page of a list goes on. */
export interface ContinuePoint {
  /** The revision that all pages show; -1 for the newest after the first one has expired. */
  readonly revision: number
  /** The last key of the page before. */
  readonly after: string
}

const version = 'meta.k8s.io/v1'

/** The opaque `continue` value for a point in `prefix`. */
export function encodeContinue(point: ContinuePoint, prefix: string): string {
  const token = { v: version, rv: point.revision, start: point.after.slice(prefix.length) }
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

const refused = (why: string): ApiError =>
  badRequest(`invalid continue token: continue key is not valid: ${why}`)

/** Reads a `continue` value; throws a 400 when it is none of ours. */
export function decodeContinue(text: string, prefix: string): ContinuePoint {
  const token = parse(text)
  if (!isRecord(token)) throw refused('it does not come from this server')
  const { v, rv, start } = token
  if (v !== version) throw refused(`server does not recognize this encoded version ${String(v)}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0)
    throw refused(`incorrect encoded start resourceVersion (version ${version})`)
  if (typeof start !== 'string' || start === '')
    throw refused(`encoded start key empty (version ${version})`)
  // A store key has no such segments, so somebody has made this up.
  if (start.split('/').some((segment) => segment === '..' || segment === '.')) throw refused(start)
  return { revision: rv, after: prefix + start }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}

/** A list as a request states it. */
export interface ListQuery extends Query {
  readonly limit?: number
  readonly continue?: string
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
}

/** One page of a list, as records. */
export interface ListPage {
  readonly runs: readonly (readonly StoredRecord[])[]
  readonly revision: number
  readonly continue: string | undefined
  /** How many objects follow; unknown when selectors filter. */
  readonly remaining: number | undefined
}

function matchProblems(
  match: string,
  { resourceVersion = '', ...query }: ListQuery,
): FieldProblem[] {
  const field = 'resourceVersionMatch'
  const problems: FieldProblem[] = []
  const forbid = (why: string) => problems.push(forbiddenValue(field, why))
  if (resourceVersion === '')
    forbid('resourceVersionMatch is forbidden unless resourceVersion is provided')
  if (query.continue) forbid('resourceVersionMatch is forbidden when continue is provided')
  if (match !== 'Exact' && match !== 'NotOlderThan')
    problems.push(notSupported(field, match, ['Exact', 'NotOlderThan', '']))
  if (match === 'Exact' && resourceVersion === '0')
    forbid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
  return problems
}

function checkMatch(query: ListQuery): void {
  const { resourceVersion = '', resourceVersionMatch: match } = query
  const problems = match === undefined ? [] : matchProblems(match, query)
  if (problems.length > 0)
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', problems.map(toCause))
  const statesVersion = resourceVersion !== '' && resourceVersion !== '0'
  if (query.continue && statesVersion)
    throw badRequest('specifying resource version is not allowed when using continue')
}

/** Which revision a list shows: `undefined` for the newest. */
async function revisionToShow(
  context: RegistryContext,
  query: ListQuery,
  from: ContinuePoint | undefined,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (from && from.revision >= 0) return from.revision
  const { resourceVersion = '' } = query
  if (resourceVersion === '') {
    await context.store.freshen(signal)
    return undefined
  }
  const wanted = parseResourceVersion(resourceVersion)
  await waitForRevision(context, wanted, signal)
  const exact = query.resourceVersionMatch === 'Exact'
  // Without a match rule a limited list of a given version means exactly that version.
  const legacyExact = query.resourceVersionMatch === undefined && query.limit && wanted > 0
  return exact || legacyExact ? wanted : undefined
}

function expired(prefix: string, from: ContinuePoint | undefined): ApiError {
  if (!from) return new ApiError('Expired', 'The resourceVersion for the provided list is too old.')
  return new ApiError(
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    { continueToken: encodeContinue({ revision: -1, after: from.after }, prefix) },
  )
}

function readRange(
  context: RegistryContext,
  prefix: string,
  options: RangeOptions,
  from: ContinuePoint | undefined,
): Range {
  try {
    return context.store.range(prefix, options)
  } catch (error) {
    if (error instanceof RevisionCompacted) throw expired(prefix, from)
    if (error instanceof RevisionUnknown)
      throw tooLarge(options.revision ?? 0, context.store.revision)
    throw error
  }
}

/** What a page shows, and the key after which the next one begins, if there is one. */
interface Cut {
  readonly runs: ListPage['runs']
  readonly last?: string | undefined
  readonly remaining?: number
}

function cutOf({ runs, remaining }: Range): Cut {
  if (remaining === 0) return { runs }
  return { runs, last: runs.at(-1)?.at(-1)?.key, remaining }
}

/** Objects of so many bytes are decoded in one piece; after that, other requests get a turn. */
export const bytesPerTurn = 1024 * 1024

/** A page is never shorter than asked for without need, so all are looked at until `limit` match. */
async function selectedCut({ runs }: Range, selection: Selection, limit: number): Promise<Cut> {
  const kept: StoredRecord[] = []
  let bytes = 0
  for (const run of runs) {
    for (const record of run) {
      bytes += record.value.length
      if (bytes > bytesPerTurn) {
        bytes = 0
        await nextTurn()
      }
      if (!selection.matches(record)) continue
      if (limit > 0 && kept.length === limit) return { runs: [kept], last: kept.at(-1)?.key }
      kept.push(record)
    }
  }
  return { runs: [kept] }
}

/** One page of the objects that `query` means, all at one revision. */
export async function listObjects(
  context: RegistryContext,
  definition: KindDefinition,
  query: ListQuery,
  signal: AbortSignal,
): Promise<ListPage> {
  checkMatch(query)
  const selection = selectionOf(definition, query)
  const prefix = storePrefix(definition.kind, query)
  const from = query.continue ? decodeContinue(query.continue, prefix) : undefined
  const shown = await revisionToShow(context, query, from, signal)
  const limit = query.limit ?? 0
  const options = {
    ...(shown !== undefined && { revision: shown }),
    ...(from && { after: from.after }),
    ...(selection.isEverything && limit > 0 && { limit }),
  }
  const range = readRange(context, prefix, options, from)
  const { revision } = range
  const cut = selection.isEverything ? cutOf(range) : await selectedCut(range, selection, limit)
  const { runs, last, remaining } = cut
  return {
    runs,
    revision,
    continue: last === undefined ? undefined : encodeContinue({ revision, after: last }, prefix),
    remaining,
  }
}
