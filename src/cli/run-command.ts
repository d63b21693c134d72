import {
  CommandFailed,
  readTrustedFile,
  redact,
  SallyportError,
  visibleText,
  WrongUsage,
} from '../core/index.ts'
import { type Command, FailedWithResult } from './command.ts'
import { closestCommand, commandGroups, matchCommand, overview } from './command-tree.ts'
import type { Io } from './io.ts'
import { asksForHelp, helpText, parseOptions } from './options/index.ts'

/** What the process exits with: done (0), failed (1), called wrongly (2), or what a program that it ran exited with. */
export type ExitCode = number

/** Whether a failure is to be told as JSON too; asked of words that may be wrong otherwise. */
function wantsJson(argv: readonly string[], env: Io['env']): boolean {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  const given = words.flatMap((word, index) => {
    if (word === '--output') return [argv[index + 1]]
    return word.startsWith('--output=') ? [word.slice('--output='.length)] : []
  })
  return (given.at(-1) ?? env['SALLYPORT_OUTPUT']) === 'json'
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly hint?: string
}

const resultOf = (error: unknown): object => (error instanceof FailedWithResult ? error.result : {})

const hints: Readonly<Record<string, string>> = {
  CLIENT_CONNECTION_FAILED: 'is the server running? `sallyport up` starts it',
}

function failureOf(error: unknown, io: Io): Failure {
  if (error instanceof SallyportError) {
    const hint = error instanceof CommandFailed ? error.hint : hints[error.code]
    return { code: error.code, message: error.message, ...(hint !== undefined && { hint }) }
  }
  if (io.drain.aborted && error === io.drain.reason)
    return { code: 'INTERRUPTED', message: 'interrupted by a signal' }
  const message = error instanceof Error ? error.message : String(error)
  // A stack is for whoever mends the program, not for who runs it.
  if (io.env['SALLYPORT_DEBUG'] && error instanceof Error) io.stderr(`${error.stack}\n`)
  return {
    code: 'INTERNAL',
    message: `unexpected failure: ${message}`,
    hint: 'this is a fault of Sallyport; run again with SALLYPORT_DEBUG=1 and report what it prints',
  }
}

function report(failure: Failure, io: Io, json?: { readonly result: object }): void {
  if (json) io.stdout(`${redact(JSON.stringify({ ...json.result, error: failure }))}\n`)
  // Names of a kubeconfig and words of a server are in it.
  io.stderr(visibleText(`error: ${failure.message}\n`))
  if (failure.hint) io.stderr(visibleText(`hint: ${failure.hint}\n`))
}

async function runMatched(command: Command, rest: readonly string[], io: Io): Promise<ExitCode> {
  if (asksForHelp(rest)) {
    io.stdout(helpText(command, io.columns))
    return 0
  }
  try {
    const parsed = await parseOptions(command, {
      argv: rest,
      env: io.env,
      readFile: (path) => readTrustedFile(path, 'given'),
    })
    const code = await command.run({ options: parsed.values, args: parsed.positionals }, io)
    return code ?? 0
  } catch (error) {
    const json = wantsJson(rest, io.env) ? { result: resultOf(error) } : undefined
    report(failureOf(error, io), io, json)
    if (!(error instanceof WrongUsage)) return 1
    io.stderr(`Run \`${command.command} --help\` for its options.\n`)
    return 2
  }
}

/** Shows the commands; to whom has not asked for help that is an error. */
function showOverview(text: string, isAsked: boolean, io: Io): ExitCode {
  if (isAsked) io.stdout(text)
  else io.stderr(text)
  return isAsked ? 0 : 2
}

function refuseUnknown(commands: readonly Command[], argv: readonly string[], io: Io): ExitCode {
  const words = wordsOf(argv)
  const guess = closestCommand(commands, words)
  const failure = {
    code: 'WRONG_USAGE',
    message: `there is no command \`sallyport ${words.join(' ')}\``,
    hint: guess ? `did you mean \`${guess}\`?` : 'run `sallyport --help` for the list',
  }
  report(failure, io, wantsJson(argv, io.env) ? { result: {} } : undefined)
  return 2
}

const wordsOf = (argv: readonly string[]): string[] => argv.filter((word) => !word.startsWith('-'))

/** Finds the command that `argv` names and runs it to its end. */
export async function runCommand(
  commands: readonly Command[],
  argv: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const [first, ...others] = argv
  // `help user create` is another way to say `user create --help`.
  const said = first === 'help' ? [...others, '--help'] : argv
  const match = matchCommand(commands, said)
  if (match) return runMatched(match.command, match.rest, io)
  const words = wordsOf(said)
  const group = commandGroups(commands).find((name) => name === words[0])
  if (words.length > (group === undefined ? 0 : 1)) return refuseUnknown(commands, said, io)
  return showOverview(overview(commands, group), said.length === 0 || asksForHelp(said), io)
}
