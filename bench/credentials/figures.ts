import { median } from '../api/figure.ts'
import { shown } from '../api/table.ts'

/** What we want of a figure: so many times better than that of another contestant. */
export interface Aim {
  readonly of: string
  readonly than: string
  readonly times: number
}

/** One line of a table with as many columns as there are contestants. */
export interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
  readonly aims: readonly Aim[]
  /** The median of the rounds, by contestant. */
  readonly values: Readonly<Record<string, number>>
  readonly rounds: Readonly<Record<string, readonly number[]>>
}

/** A figure from all rounds of all contestants. */
export function figureOf(about: Omit<Figure, 'values'>): Figure {
  const values: Record<string, number> = {}
  for (const [name, rounds] of Object.entries(about.rounds)) values[name] = median(rounds)
  return { ...about, values }
}

/** How each aim of a figure came out, in a sentence. */
export function verdictsOf({ name, unit, better, aims, values }: Figure): string[] {
  const lines: string[] = []
  for (const { of, than, times } of aims) {
    const [ours, theirs] = [values[of], values[than]]
    if (!ours || !theirs) {
      lines.push(`${name}, ${unit}: ${than} was not measured`)
      continue
    }
    const ratio = better === 'more' ? ours / theirs : theirs / ours
    const word = ratio >= times ? 'met' : 'missed'
    lines.push(
      `${name}, ${unit}: ${of} is ${shown(ratio)} times as good as ${than}; aim ${times}: ${word}`,
    )
  }
  return lines
}

/** The figures as a Markdown table, and what became of the aims. */
export function renderFigures(figures: readonly Figure[]): string {
  const names = [...new Set(figures.flatMap(({ values }) => Object.keys(values)))]
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rows = figures.map((figure) =>
    row([`${figure.name}, ${figure.unit}`, ...names.map((name) => shown(figure.values[name]))]),
  )
  return [
    row(['figure', ...names]),
    row(['---', ...names.map(() => '--:')]),
    ...rows,
    '',
    ...figures.flatMap(verdictsOf).map((line) => `- ${line}`),
  ].join('\n')
}
