import type { OptionDeclaration } from '../../core/index.ts'
import type { CommandShape } from './command-shape.ts'
import { defaultOf, flagOf, groupsOf } from './describe-option.ts'
import { usageOf } from './help-text.ts'
import { environmentOf } from './option-names.ts'

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
