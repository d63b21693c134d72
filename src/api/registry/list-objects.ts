import { ApiError, badRequest, invalid, type Query } from '../../core/index.ts'
import {
  type Range,
  type RangeOptions,
  RevisionCompacted,
  RevisionUnknown,
  type StoredRecord,
} from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/kind-definition.ts'
import { type FieldProblem, forbiddenValue, notSupported, toCause } from '../validation/index.ts'
import { type ContinuePoint, decodeContinue, encodeContinue } from './continue-token.ts'
import { storePrefix } from './keys.ts'
import type { RegistryContext } from './registry-context.ts'
import { parseResourceVersion, tooLarge, waitForRevision } from './resource-version.ts'
import { type Selection, selectionOf } from './selection.ts'

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

const lastOf = (runs: readonly (readonly StoredRecord[])[]): StoredRecord | undefined =>
  runs.at(-1)?.at(-1)

/** Goes on reading until `limit` records match: a page is never shorter than asked for without need. */
function filteredPage(
  read: (after: string | undefined) => Range,
  selection: Selection,
  limit: number,
): {
  readonly kept: StoredRecord[]
  readonly range: Range
  readonly more: boolean
  readonly last: string
} {
  const kept: StoredRecord[] = []
  let after: string | undefined
  for (;;) {
    const range = read(after)
    for (const run of range.runs) {
      for (const record of run) {
        if (!selection.matches(record)) continue
        if (limit > 0 && kept.length === limit)
          return { kept, range, more: true, last: kept.at(-1)?.key ?? '' }
        kept.push(record)
      }
    }
    after = lastOf(range.runs)?.key
    if (range.remaining === 0 || after === undefined) return { kept, range, more: false, last: '' }
  }
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
  const revision = await revisionToShow(context, query, from, signal)
  const limit = query.limit ?? 0
  const shown = revision === undefined ? {} : { revision }
  const start = from ? { after: from.after } : {}
  if (selection.isEverything) {
    const range = readRange(
      context,
      prefix,
      { ...shown, ...start, ...(limit > 0 && { limit }) },
      from,
    )
    const last = lastOf(range.runs)
    const more = range.remaining > 0 && last !== undefined
    return {
      runs: range.runs,
      revision: range.revision,
      continue: more
        ? encodeContinue({ revision: range.revision, after: last.key }, prefix)
        : undefined,
      remaining: more ? range.remaining : undefined,
    }
  }
  const read = (after: string | undefined): Range =>
    readRange(context, prefix, { ...shown, ...start, ...(after !== undefined && { after }) }, from)
  const page = filteredPage(read, selection, limit)
  return {
    runs: [page.kept],
    revision: page.range.revision,
    continue: page.more
      ? encodeContinue({ revision: page.range.revision, after: page.last }, prefix)
      : undefined,
    remaining: undefined,
  }
}
