import { commands } from '../../src/cli/commands.ts'
import type { Io } from '../../src/cli/io.ts'
import { type ExitCode, runCommand } from '../../src/cli/run-command.ts'

/** What a command said and how it ended. */
export interface CommandOutcome {
  readonly code: ExitCode
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command of `sallyport` in this process, as an ordinary user without a terminal. */
export async function runInProcess(
  args: readonly string[],
  options: {
    readonly env?: Io['env']
    readonly homeDirectory?: string
    /** Tells it to end. */
    readonly drain?: AbortSignal
    /** Sees what it prints, as it prints it. */
    readonly onStdout?: (text: string) => void
  } = {},
): Promise<CommandOutcome> {
  let stdout = ''
  let stderr = ''
  const never = new AbortController().signal
  const code = await runCommand(commands, args, {
    env: options.env ?? {},
    interactive: false,
    columns: 80,
    isRoot: false,
    homeDirectory: options.homeDirectory ?? '/nonexistent',
    stdout(text) {
      stdout += text
      options.onStdout?.(text)
    },
    stderr(text) {
      stderr += text
    },
    drain: options.drain ?? never,
    kill: never,
  })
  return { code, stdout, stderr }
}
