import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { ProcessEnd } from '../pod/pod-status.ts'

/** Sends a signal to a process, or to a group if the number is negative, as `kill` does. */
export type SendSignal = (pid: number, signal: NodeJS.Signals) => void

/** The process of a workload, in a group of its own, with the terminal's input and output. */
export class WorkloadProcess {
  /** Resolves when it has ended, and all that it left behind in its group. */
  readonly ended: Promise<ProcessEnd>
  readonly #child: ChildProcess
  readonly #send: SendSignal

  constructor(
    words: readonly string[],
    env: Readonly<Record<string, string | undefined>>,
    send: SendSignal,
  ) {
    const [program = '', ...args] = words
    // A group of its own: signals reach whatever a shell or npm has started, and nothing else.
    this.#child = spawn(program, args, { stdio: 'inherit', env: { ...env }, detached: true })
    this.#send = send
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('exit', (code, signal) => {
        this.signal('SIGKILL')
        resolve(endOf(code, signal))
      })
    })
  }

  /** Sends a signal to the process and to what it has started; none is left to get it after the end. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      this.#send(-pid, signal)
    } catch {
      // The whole group is gone.
    }
  }
}

/** As a shell tells it: 128 and the number of the signal. */
function endOf(code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
  if (signal === null) return { exitCode: code ?? 1 }
  const number = constants.signals[signal]
  return { exitCode: 128 + number, signal: number }
}

/** Runs a command that only does or does not work; returns what it complained of, or nothing. */
export function complaintOf(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const [program = '', ...args] = words
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...env },
      timeout: 10_000,
    })
    let complaint = ''
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = (complaint + String(chunk)).slice(0, 2_000)
    })
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) =>
      resolve(code === 0 ? undefined : complaint.trim().split('\n').at(-1) || `exit code ${code}`),
    )
  })
}
