import { type Figure, isMet, ratioOf } from './figure.ts'

const columns = ['figure', 'ours', 'kube-apiserver', 'bare node', 'ratio', 'aim', ''] as const

/** A number with as many digits as help. */
export function shown(value: number | undefined): string {
  if (value === undefined) return '-'
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toPrecision(value >= 10 ? 3 : 2).replace(/\.0+$/, '')
}

function aimOf({ aim, unit }: Figure): string {
  if (aim === undefined) return ''
  return 'times' in aim ? `${aim.times}x` : `${shown(aim.atMost)} ${unit}`
}

function cellsOf(figure: Figure): string[] {
  const ratio = ratioOf(figure)
  const met = isMet(figure)
  return [
    `${figure.name}, ${figure.unit}`,
    shown(figure.values.ours),
    shown(figure.values.peer),
    figure.values.floor === undefined ? '' : shown(figure.values.floor),
    ratio === undefined ? '' : `${shown(ratio)}x`,
    aimOf(figure),
    met === undefined ? '' : met ? 'met' : 'missed',
  ]
}

/** The figures as a table for a terminal, and in Markdown. */
export function renderTable(figures: readonly Figure[], form: 'terminal' | 'markdown'): string {
  const rows = [[...columns], ...figures.map(cellsOf)]
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const padded = rows.map((row) =>
    row.map((cell, at) => {
      const width = widths[at] ?? 0
      return at === 0 || at === columns.length - 1 ? cell.padEnd(width) : cell.padStart(width)
    }),
  )
  if (form === 'terminal') return padded.map((row) => row.join('  ').trimEnd()).join('\n')
  const line = widths.map((width, at) => {
    const isText = at === 0 || at === columns.length - 1
    return isText ? '-'.repeat(Math.max(3, width)) : `${'-'.repeat(Math.max(2, width - 1))}:`
  })
  return [padded[0] ?? [], line, ...padded.slice(1)]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n')
}
