import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type Sallyport, startSallyport, upArguments } from '../sallyport.ts'

/** Starts that take longer are worth a look at what the server said. */
const slowMs = 5_000

/** A server that is killed again and again, always on the same port and data. */
export class Victim {
  readonly #directory: string
  readonly #port: number
  readonly startMs: number[] = []
  #running: Sallyport | undefined

  constructor(directory: string, port: number) {
    this.#directory = directory
    this.#port = port
  }

  /** Starts it and waits until it serves. */
  async start(): Promise<Sallyport> {
    const began = performance.now()
    this.#running = await startSallyport(this.#directory, this.#port)
    const ms = performance.now() - began
    this.startMs.push(ms)
    if (ms > slowMs) console.log(`a slow start, ${ms.toFixed(0)} ms:\n${this.#running.stderr()}`)
    return this.#running
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await this.#running?.stop('SIGKILL')
    this.#running = undefined
  }

  /** Starts it and kills it after so many milliseconds, however far it has come. */
  async killWhileStarting(afterMs: number): Promise<void> {
    const args = upArguments(this.#directory, this.#port)
    const child = spawn(process.execPath, args, { stdio: 'ignore' })
    const gone = once(child, 'exit')
    await delay(afterMs)
    child.kill('SIGKILL')
    await gone
  }

  /** Ends it in good order. */
  async stop(): Promise<void> {
    await this.#running?.stop('SIGTERM')
    this.#running = undefined
  }
}
