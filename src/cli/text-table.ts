import { visibleLine } from '../core/index.ts'

/** Rows under headings, in columns as wide as their widest cell; what somebody else wrote commands no terminal. */
export function textTable(
  headings: readonly string[],
  given: readonly (readonly string[])[],
): string {
  const rows = given.map((row) => row.map(visibleLine))
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd()
  return `${[headings, ...rows].map(line).join('\n')}\n`
}
