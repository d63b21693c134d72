import type { Command } from './command.ts'

const wordsOf = (command: Command): string[] => command.command.split(' ').slice(1)

/** The command whose words `argv` begins with, the longest first, and what follows them. */
export function matchCommand(
  commands: readonly Command[],
  argv: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } | undefined {
  const matching = commands
    .filter((command) => wordsOf(command).every((word, index) => argv[index] === word))
    .sort((a, b) => wordsOf(b).length - wordsOf(a).length)
  const [command] = matching
  return command && { command, rest: argv.slice(wordsOf(command).length) }
}

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

/** How many single changes turn one word into another. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** The command that was probably meant, if one is close enough. */
export function closestCommand(
  commands: readonly Command[],
  words: readonly string[],
): string | undefined {
  const said = words.slice(0, 2).join(' ')
  const ranked = commands
    .flatMap((command) => {
      const known = wordsOf(command)
      const compared = known.length === 1 ? (words[0] ?? '') : said
      return [{ command: command.command, away: distance(known.join(' '), compared) }]
    })
    .sort((a, b) => a.away - b.away)
  const [best] = ranked
  return best && best.away <= 3 ? best.command : undefined
}
