import { median } from '../api/figure.ts'
import { shown } from '../api/table.ts'
import { type Name, names, titles } from './pairs-contestants.ts'
import { besideStopped, type Metric, type Scenario } from './pairs-scenarios.ts'

/** One line of the table. */
export interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: Metric['better']
  readonly aim?: number
  /** The median of the rounds. */
  readonly values: Partial<Record<Name, number>>
  readonly rounds: Partial<Record<Name, readonly number[]>>
}

/** A figure from all rounds of all contestants. */
export function figureOf(
  scenario: Scenario,
  { label, unit, better, aim }: Metric,
  rounds: Figure['rounds'],
): Figure {
  const values: Partial<Record<Name, number>> = {}
  for (const name of names) {
    const found = rounds[name]
    if (found && found.length > 0) values[name] = median(found)
  }
  const name = [scenario.name, label].filter(Boolean).join(': ')
  return { name, unit, better, ...(aim !== undefined && { aim }), values, rounds }
}

/** How many times better ours is than Konnectivity's as it comes; above 1 is in our favour. */
export function ratioOf({ values, better }: Figure): number | undefined {
  const { ours, go } = values
  if (!ours || !go) return undefined
  return better === 'more' ? ours / go : go / ours
}

const header = ['figure', ...names.map((name) => titles[name]), 'ratio', 'aim', '']

function cellsOf(figure: Figure): string[] {
  const ratio = ratioOf(figure)
  const { aim } = figure
  const isMet = aim !== undefined && ratio !== undefined && ratio >= aim
  return [
    `${figure.name}, ${figure.unit}`,
    ...names.map((name) => shown(figure.values[name])),
    ratio === undefined ? '' : `${shown(ratio)}x`,
    aim === undefined ? '' : `${shown(aim)}x`,
    aim === undefined || ratio === undefined ? '' : isMet ? 'met' : 'missed',
  ]
}

/** The figures as a table for a terminal, or in Markdown. */
export function renderTable(figures: readonly Figure[], form: 'terminal' | 'markdown'): string {
  const rows = [header, ...figures.map(cellsOf)]
  const widths = header.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const lines = rows.map((row) =>
    row.map((cell, at) =>
      at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0),
    ),
  )
  if (form === 'terminal') return lines.map((row) => row.join('  ').trimEnd()).join('\n')
  const rule = widths.map((width, at) =>
    at === 0 ? '-'.repeat(Math.max(width, 3)) : `${'-'.repeat(Math.max(width - 1, 2))}:`,
  )
  const [first = [], ...rest] = lines
  return [first, rule, ...rest].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** What is asked of ours without looking at anybody else. */
export function ownAims(figures: readonly Figure[]): string[] {
  const ours = (start: string): number | undefined =>
    figures.find(({ name }) => name === start)?.values.ours
  const lines: string[] = []
  const [idle, busy] = [
    ours('echo of 1 KB, idle: p99'),
    ours('echo of 1 KB beside a download: p99'),
  ]
  if (idle && busy) {
    lines.push(
      `Ours: a download beside it makes the echo's p99 ${shown(busy / idle)} times as long (aim: at most 2).`,
    )
  }
  const [all, less] = [ours('download, 50 connections'), ours(besideStopped)]
  if (all && less) {
    lines.push(
      `Ours: one stopped reader leaves 50 others ${shown((100 * less) / all)} % of their speed (aim: 90).`,
    )
  }
  return lines
}
