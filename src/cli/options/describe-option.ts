import type { OptionDeclaration, OptionTable } from '../../core/index.ts'
import { showNumber } from './read-value.ts'

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
export function flagOf(name: string, declaration: OptionDeclaration): string {
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
export function remarksOf(declaration: OptionDeclaration): string[] {
  const fallback = defaultOf(declaration)
  return [
    ...(declaration.required ? ['required'] : []),
    ...(declaration.repeatable ? ['may be repeated'] : []),
    ...(fallback === '' ? [] : [`default: ${fallback}`]),
  ]
}

/** The options of a table under their headings, in the order of the table. */
export function groupsOf(table: OptionTable): Map<string, [string, OptionDeclaration][]> {
  const groups = new Map<string, [string, OptionDeclaration][]>()
  for (const entry of Object.entries(table)) {
    const group = groups.get(entry[1].group)
    if (group) group.push(entry)
    else groups.set(entry[1].group, [entry])
  }
  return groups
}
