import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import type { PluginHost } from './plugin.ts'

/** A program that is ready to run. */
export interface Program {
  readonly path: string
  readonly args: readonly string[]
  readonly env: Record<string, string>
  readonly interactive: boolean
}

/** Why we ended a plugin ourselves. */
export type Stopped = 'TIMEOUT' | 'OUTPUT_TOO_LARGE' | 'ABORTED'

/** How a run ended. */
export interface ProcessEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly stdout: Buffer
  readonly stopped?: Stopped
}

const defaultTimeoutMs = 60_000
const defaultKillGraceMs = 2_000
const defaultMaxOutputBytes = 1024 * 1024
/** How long a process that has ended may leave its output open to others, and silent. */
const drainMs = 100

/** Runs a program to its end; rejects only if the system does not start it. */
export function runProcess(
  program: Program,
  host: PluginHost,
  signal?: AbortSignal,
): Promise<ProcessEnd> {
  return new PluginProcess(program, host).run(signal)
}

/** The limit on a run's time; 0 for none. */
export const timeoutOf = (interactive: boolean, { timeoutMs }: PluginHost): number =>
  timeoutMs ?? (interactive ? 0 : defaultTimeoutMs)

class PluginProcess {
  readonly #program: Program
  readonly #host: PluginHost
  readonly #hasGroup: boolean
  readonly #chunks: Buffer[] = []
  #size = 0
  #child: ChildProcess | undefined
  #stopped: Stopped | undefined
  #timers: NodeJS.Timeout[] = []
  #end: { exitCode: number | null; signal: string | null } = { exitCode: null, signal: null }
  #settle: () => void = () => {}

  constructor(program: Program, host: PluginHost) {
    this.#program = program
    this.#host = host
    // A group of its own would take the terminal away from a plugin that talks to the user.
    this.#hasGroup = !program.interactive && host.platform !== 'win32'
  }

  async run(signal?: AbortSignal): Promise<ProcessEnd> {
    const abort = (): void => this.#stop('ABORTED')
    const signals = [signal, this.#host.interrupt]
    try {
      await new Promise<void>((resolve, reject) => {
        this.#settle = resolve
        this.#start(reject)
        for (const each of signals) each?.addEventListener('abort', abort, { once: true })
        const timeoutMs = timeoutOf(this.#program.interactive, this.#host)
        if (timeoutMs > 0) this.#after(timeoutMs, () => this.#stop('TIMEOUT'))
      })
    } finally {
      for (const each of signals) each?.removeEventListener('abort', abort)
      this.#letGo()
    }
    const stopped = this.#stopped && { stopped: this.#stopped }
    return { ...this.#end, stdout: Buffer.concat(this.#chunks), ...stopped }
  }

  #start(reject: (error: unknown) => void): void {
    const { path, args, env, interactive } = this.#program
    const { cwd, stderr } = this.#host
    const child = spawn(path, args, {
      cwd,
      env,
      shell: false,
      windowsHide: true,
      detached: this.#hasGroup,
      stdio: [interactive ? 'inherit' : 'ignore', 'pipe', stderr === 'inherit' ? stderr : 'pipe'],
    })
    this.#child = child
    child.on('error', reject)
    child.stdout?.on('data', (chunk: Buffer) => this.#keep(chunk))
    if (stderr !== 'inherit') child.stderr?.pipe(stderr, { end: false })
    child.on('exit', (exitCode, signal) => this.#exited(exitCode, signal))
    child.on('close', () => this.#settle())
  }

  #keep(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size > (this.#host.maxOutputBytes ?? defaultMaxOutputBytes)) {
      this.#chunks.length = 0
      this.#stop('OUTPUT_TOO_LARGE')
    } else if (!this.#stopped) this.#chunks.push(chunk)
  }

  #exited(exitCode: number | null, signal: string | null): void {
    this.#end = { exitCode, signal }
    if (this.#stopped) {
      this.#kill('SIGKILL') // whatever it has started and left behind
      this.#settle()
    } else this.#drain()
  }

  /** A process that the plugin left behind may hold its output open for ever: silence is an end as well. */
  #drain(): void {
    const before = this.#size
    this.#after(drainMs, () => {
      // What has already arrived is read between timers and this.
      setImmediate(() => (this.#size === before ? this.#settle() : this.#drain()))
    })
  }

  #stop(why: Stopped): void {
    if (this.#stopped) return
    this.#stopped = why
    this.#kill('SIGTERM')
    this.#after(this.#host.killGraceMs ?? defaultKillGraceMs, () => {
      this.#kill('SIGKILL')
      this.#after(drainMs, () => this.#settle())
    })
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child ?? {}
    if (pid === undefined) return
    if (this.#hasGroup) this.#host.killGroup(pid, signal)
    else this.#child?.kill(signal)
  }

  #after(ms: number, act: () => void): void {
    this.#timers.push(setTimeout(act, ms))
  }

  #letGo(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    const { stderr } = this.#host
    if (stderr !== 'inherit') this.#child?.stderr?.unpipe(stderr)
    for (const stream of [this.#child?.stdout, this.#child?.stderr]) release(stream)
  }
}

function release(stream: Readable | null | undefined): void {
  stream?.removeAllListeners('data')
  stream?.destroy()
}
