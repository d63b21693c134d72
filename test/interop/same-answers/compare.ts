import type { SteadyAnswer } from './steady.ts'

/** One place at which two answers are not the same. */
export interface Difference {
  readonly topic: string
  readonly case: string
  /** Method, path and number of the request within its case. */
  readonly request: string
  /** Where in the answer: `code`, `headers.warning`, `body.details.causes.0.message`. */
  readonly at: string
  /** `undefined` where one has nothing. */
  readonly ours: unknown
  readonly theirs: unknown
}

/** Where a difference was found. */
export type Place = Pick<Difference, 'topic' | 'case' | 'request'>

/** Everything that differs between two answers, place by place. */
export function compareAnswers(
  place: Place,
  ours: SteadyAnswer,
  theirs: SteadyAnswer,
): Difference[] {
  const found: Difference[] = []
  collect(ours, theirs, [], (at, a, b) => {
    found.push({ ...place, at: at.join('.'), ours: a, theirs: b })
  })
  return found
}

type Report = (at: readonly string[], ours: unknown, theirs: unknown) => void

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const kindOf = (value: Record<string, unknown>): string =>
  typeof value['kind'] === 'string' ? value['kind'] : ''

/** Objects of two kinds have nothing in common: one difference says more than all their fields. */
const areOfOneSort = (ours: unknown, theirs: unknown): ours is Record<string, unknown> =>
  isObject(ours) &&
  isObject(theirs) &&
  Array.isArray(ours) === Array.isArray(theirs) &&
  kindOf(ours) === kindOf(theirs)

function collect(ours: unknown, theirs: unknown, at: readonly string[], report: Report): void {
  if (!areOfOneSort(ours, theirs) || !isObject(theirs)) {
    if (!Object.is(ours, theirs)) report(at, ours, theirs)
    return
  }
  for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)]))
    collect(ours[key], theirs[key], [...at, key], report)
}

const shown = (value: unknown): string =>
  value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 600)

/** A difference for the eyes of whoever has to mend it. */
export function describeDifference(difference: Difference): string {
  const { topic, request, at, ours, theirs } = difference
  return [
    `${topic} / ${difference.case} / ${request}`,
    `  at     ${at}`,
    `  ours   ${shown(ours)}`,
    `  theirs ${shown(theirs)}`,
  ].join('\n')
}
