import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A program that serves until it is told to stop. */
export interface Child {
  readonly process: ChildProcess
  readonly pid: number
  /** The first line that it printed. */
  readonly firstLine: string
  /** The end of what it said on stderr. */
  stderr(): string
  /** Ends it by `signal` and resolves when it is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

const keptStderr = 4_000

/** Starts a program and waits for its first line; fails with its stderr when there is none. */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<Child> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk: unknown) => {
    stderr = (stderr + String(chunk)).slice(-keptStderr)
  })
  const gone = once(child, 'close')
  const lines = createInterface({ input: child.stdout })
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    gone.then(() => undefined),
  ])
  if (first === undefined || child.pid === undefined) {
    throw new Error(`${[program, ...args].join(' ')} ended at once:\n${stderr.trim()}`)
  }
  return {
    process: child,
    pid: child.pid,
    firstLine: first,
    stderr: () => stderr,
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      await gone
    },
  }
}
