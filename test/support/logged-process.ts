import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'

/** A program that runs until it is told to stop, and all the lines it has said. */
export class LoggedProcess {
  readonly lines: string[] = []
  readonly #child: ChildProcess
  readonly #news = new EventEmitter().setMaxListeners(0)
  readonly #gone: Promise<number | null>
  #isGone = false

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.#child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (!stream) continue
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line)
        this.#news.emit('news')
      })
    }
    this.#gone = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('close', (code) => {
        this.#isGone = true
        this.#news.emit('news')
        resolve(code)
      })
    })
    this.#gone.catch(() => {}) // whoever waits for it is told
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Resolves with the exit code when it has ended. */
  get gone(): Promise<number | null> {
    return this.#gone
  }

  get log(): string {
    return this.lines.join('\n')
  }

  /** The first line that matches, from line `from` on; fails when the program ends without it. */
  async said(wanted: RegExp, from = 0): Promise<string> {
    for (;;) {
      const line = this.lines.slice(from).find((each) => wanted.test(each))
      if (line !== undefined) return line
      if (this.#isGone) throw new Error(`ended without saying ${wanted}:\n${this.log.slice(-4000)}`)
      await once(this.#news, 'news')
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Ends it: asked politely first, unless told otherwise, and killed when it does not heed that. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', patienceMs = 3_000): Promise<number | null> {
    if (this.#isGone) return this.#gone
    this.#child.kill(signal)
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), patienceMs)
    const code = await this.#gone
    clearTimeout(killer)
    return code
  }
}
