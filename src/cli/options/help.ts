import type { OptionDeclaration, OptionTable } from '../../core/index.ts'
import { environmentOf, showNumber } from './values.ts'

/** A word of a command line that is not an option, for example NAME. */
export interface ArgumentDeclaration {
  readonly name: string
  readonly describe: string
  readonly required?: boolean
  /** Takes all words that are left. */
  readonly repeatable?: boolean
}

/** How a command is called: enough to parse its line, to explain it and to document it. */
export interface CommandShape {
  /** As typed, for example `sallyport user create`. */
  readonly command: string
  /** One sentence that says what it does. */
  readonly summary: string
  readonly options: OptionTable
  readonly arguments?: readonly ArgumentDeclaration[]
  readonly examples: readonly { readonly line: string; readonly does: string }[]
}

const placeholders: Readonly<Record<OptionDeclaration['type'], string>> = {
  string: 'TEXT',
  integer: 'NUMBER',
  boolean: '',
  duration: 'DURATION',
  bytes: 'SIZE',
  path: 'PATH',
  address: 'IP',
  cidr: 'CIDR',
  choice: '',
}

/** The flag as it is typed, with a word for its value. */
function flagOf(name: string, declaration: OptionDeclaration): string {
  const short = declaration.short === undefined ? '' : `-${declaration.short}, `
  const choices = declaration.type === 'choice' ? declaration.choices.join('|') : ''
  const value = declaration.placeholder ?? (choices || placeholders[declaration.type])
  return `${short}--${name}${value === '' ? '' : ` ${value}`}`
}

/** The default in words; empty when there is none. */
export function defaultOf(declaration: OptionDeclaration): string {
  if (declaration.secret) return ''
  if (declaration.defaultText !== undefined) return declaration.defaultText
  const value = declaration.default
  if (value === undefined || value === '') return ''
  const values: readonly (string | number | boolean)[] = Array.isArray(value) ? value : [value]
  return values.map((item) => showValue(declaration, item)).join(', ')
}

function showValue(declaration: OptionDeclaration, value: string | number | boolean): string {
  const { type } = declaration
  if (typeof value !== 'number') return String(value)
  return type === 'duration' || type === 'bytes' ? showNumber(type, value) : String(value)
}

/** What must be said beyond the description. */
function remarksOf(declaration: OptionDeclaration): string[] {
  const fallback = defaultOf(declaration)
  return [
    ...(declaration.required ? ['required'] : []),
    ...(declaration.repeatable ? ['may be repeated'] : []),
    ...(fallback === '' ? [] : [`default: ${fallback}`]),
  ]
}

/** The options of a table under their headings, in the order of the table. */
function groupsOf(table: OptionTable): Map<string, [string, OptionDeclaration][]> {
  const groups = new Map<string, [string, OptionDeclaration][]>()
  for (const entry of Object.entries(table)) {
    const group = groups.get(entry[1].group)
    if (group) group.push(entry)
    else groups.set(entry[1].group, [entry])
  }
  return groups
}

/** Breaks `text` into lines of at most `width` characters; a longer word gets a line of its own. */
function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  if (line !== '') lines.push(line)
  return lines
}

/** Pairs as two columns, the second wrapped; a first part that is too long pushes the second down. */
function inTwoColumns(rows: readonly (readonly [string, string])[], width: number): string[] {
  const longest = Math.max(0, ...rows.map(([left]) => left.length).filter((it) => it <= 32))
  const indent = ' '.repeat(longest + 4)
  return rows.flatMap(([left, right]) => {
    const wrapped = wrapText(right, Math.max(24, width - indent.length))
    if (left.length > longest) return [`  ${left}`, ...wrapped.map((line) => indent + line)]
    const [first = '', ...others] = wrapped
    return [`  ${left.padEnd(longest)}  ${first}`, ...others.map((line) => indent + line)]
  })
}

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
function usageOf({ command, arguments: words = [], options }: CommandShape): string {
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

/** The section of one command on the reference page. */
export function markdownReference(shape: CommandShape): string {
  const lines = [`## ${shape.command}`, '', shape.summary, '', '```', usageOf(shape), '```', '']
  const words = (shape.arguments ?? []).map(({ name, describe }) => `- \`${name}\`: ${describe}`)
  if (words.length > 0) lines.push(...words, '')
  for (const [group, options] of groupsOf(shape.options)) {
    lines.push(`### ${group}`, '')
    lines.push('| option | environment | default | meaning |', '|---|---|---|---|')
    lines.push(...options.map(([name, declaration]) => rowOf(name, declaration)), '')
  }
  const examples = shape.examples.flatMap(({ line, does }) => [`# ${does}`, line])
  if (examples.length > 0) lines.push('```sh', ...examples, '```', '')
  return lines.join('\n')
}

function rowOf(name: string, declaration: OptionDeclaration): string {
  const fallback = defaultOf(declaration)
  const remarks = [
    ...(declaration.repeatable ? ['may be repeated'] : []),
    ...(declaration.required ? ['required'] : []),
  ]
  const cells = [
    `\`${flagOf(name, declaration)}\``,
    `\`${environmentOf(name, declaration)}\``,
    fallback,
    [declaration.describe, ...remarks].join('; '),
  ]
  return `| ${cells.map(escapeCell).join(' | ')} |`
}

const escapeCell = (text: string): string => text.replaceAll('|', '\\|')
