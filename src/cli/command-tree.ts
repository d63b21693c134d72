import type { Command } from './command.ts'
import { editDistance } from './options/values.ts'

const wordsOf = (command: Command): string[] => command.command.split(' ').slice(1)

/** The command whose words `argv` begins with, the longest first, and what follows them. */
export function matchCommand(
  commands: readonly Command[],
  argv: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } | undefined {
  const [called] = commands
    .flatMap((command) => callsOf(command).map((words) => ({ command, words })))
    .filter(({ words }) => words.every((word, index) => argv[index] === word))
    .sort((a, b) => b.words.length - a.words.length)
  return called && { command: called.command, rest: argv.slice(called.words.length) }
}

const callsOf = (command: Command): string[][] =>
  command.alias === undefined ? [wordsOf(command)] : [wordsOf(command), [command.alias]]

/** The first words that several commands share, such as `user`. */
export function commandGroups(commands: readonly Command[]): string[] {
  const first = commands.filter((command) => wordsOf(command).length > 1)
  return [...new Set(first.map((command) => wordsOf(command)[0] ?? ''))]
}

/** The list of commands for a person; of one group if named. */
export function overview(commands: readonly Command[], group?: string): string {
  const shown = commands.filter((command) => !group || wordsOf(command)[0] === group)
  const width = Math.max(...shown.map((command) => command.command.length))
  const rows = shown.map((command) => `  ${command.command.padEnd(width)}  ${command.summary}`)
  const head = group
    ? [`Usage: sallyport ${group} COMMAND [options]`]
    : ['Usage: sallyport COMMAND [options]', '', 'The guarded gate of a Kubernetes cluster.']
  return [
    ...head,
    '',
    'Commands',
    ...rows,
    '',
    'Every command explains itself with --help.',
    '',
  ].join('\n')
}

/** More mistakes than this, and another command was meant. */
const maxMistakes = 3

/** The command that was probably meant, if one is close enough. */
export function closestCommand(
  commands: readonly Command[],
  words: readonly string[],
): string | undefined {
  const said = words.slice(0, 2).join(' ')
  const [best] = commands
    .map((command) => {
      const known = wordsOf(command)
      const compared = known.length === 1 ? (words[0] ?? '') : said
      return { command: command.command, mistakes: editDistance(known.join(' '), compared) }
    })
    .sort((a, b) => a.mistakes - b.mistakes)
  return best && best.mistakes <= maxMistakes ? best.command : undefined
}
