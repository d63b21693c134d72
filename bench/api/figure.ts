import type { Name } from './contestant.ts'
import type { LoadResult } from './load.ts'

/** What we want a figure to be: so many times better than the peer's, or at most this much. */
export type Aim = { readonly times: number } | { readonly atMost: number }

/** One line of the table. */
export interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
  readonly aim?: Aim
  /** The median of the rounds. */
  readonly values: Partial<Record<Name, number>>
  readonly rounds: Partial<Record<Name, readonly number[]>>
}

/** What of a load's result becomes a figure. */
export interface Metric {
  readonly of: keyof LoadResult
  readonly label: string
  readonly unit: string
  readonly better: Figure['better']
  readonly aim?: Aim
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2
}

/** A figure from all rounds of all servers. */
export function figureOf(
  about: Omit<Figure, 'values' | 'rounds'>,
  rounds: Figure['rounds'],
): Figure {
  const values: Partial<Record<Name, number>> = {}
  for (const name of ['ours', 'peer', 'floor'] as const) {
    const found = rounds[name]
    if (found && found.length > 0) values[name] = median(found)
  }
  return { ...about, values, rounds }
}

/** How many times better ours is than the peer's; above 1 is in our favour, whatever the unit. */
export function ratioOf({ values, better }: Figure): number | undefined {
  const { ours, peer } = values
  if (ours === undefined || peer === undefined || ours === 0 || peer === 0) return undefined
  return better === 'more' ? ours / peer : peer / ours
}

/** Whether the aim is met; `undefined` when there is none, or nothing to compare with. */
export function isMet(figure: Figure): boolean | undefined {
  const { aim, values } = figure
  if (aim === undefined || values.ours === undefined) return undefined
  if ('atMost' in aim) return values.ours <= aim.atMost
  const ratio = ratioOf(figure)
  return ratio === undefined ? undefined : ratio >= aim.times
}
