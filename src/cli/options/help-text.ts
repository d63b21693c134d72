import type { ArgumentDeclaration, CommandShape } from './command-shape.ts'
import { flagOf, groupsOf, remarksOf } from './describe-option.ts'
import { inTwoColumns, wrapText } from './wrap-text.ts'

/** The text that `--help` prints, for a terminal of `width` columns. */
export function helpText(shape: CommandShape, width: number): string {
  const lines = [`Usage: ${usageOf(shape)}`, '', ...wrapText(shape.summary, width)]
  const words = shape.arguments ?? []
  if (words.length > 0) {
    const rows = words.map((word) => [word.name, word.describe] as const)
    lines.push('', 'Arguments', ...inTwoColumns(rows, width))
  }
  for (const [group, options] of groupsOf(shape.options)) {
    const rows = options.map(([name, declaration]) => {
      const remarks = remarksOf(declaration)
      const about = remarks.length > 0 ? ` (${remarks.join('; ')})` : ''
      return [flagOf(name, declaration), `${declaration.describe}${about}`] as const
    })
    lines.push('', group, ...inTwoColumns(rows, width))
  }
  if (shape.examples.length > 0) lines.push('', 'Examples')
  for (const { line, does } of shape.examples) lines.push(`  # ${does}`, `  ${line}`)
  return `${lines.join('\n')}\n`
}

/** The one line that shows how the command is called. */
export function usageOf({ command, arguments: words = [], options }: CommandShape): string {
  const optional = Object.keys(options).length > 0 ? ['[options]'] : []
  const shown = words.map(showArgument)
  // What follows two dashes is for another program, options too.
  const isPassedOn = words.some(({ name }) => name.startsWith('-- '))
  const parts = isPassedOn ? [...optional, ...shown] : [...shown, ...optional]
  return [command, ...parts].join(' ')
}

function showArgument({ name, required, repeatable }: ArgumentDeclaration): string {
  const shown = repeatable ? `${name}...` : name
  return required ? shown : `[${shown}]`
}
