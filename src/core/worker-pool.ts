import { Worker } from 'node:worker_threads'
import { SallyportError } from './errors.ts'

/** What a pool runs, and within which limits. */
export interface WorkerPoolOptions {
  /** The module that a worker runs: it answers each message with exactly one. */
  readonly entry: URL
  readonly maxWorkers: number
  /** A worker that takes longer for one job is terminated, and the job fails. */
  readonly maxJobMs: number
  /** A worker without a job for this long is ended, because it holds memory. */
  readonly idleMs: number
  readonly maxQueued: number
  readonly maxQueuedPerOwner: number
  readonly maxHeapMb: number
}

/** A job was not done: the queue is full, it took too long, its worker died or the pool is closed. */
export class JobFailed extends SallyportError {
  readonly code = 'JOB_FAILED'
  readonly why: 'busy' | 'timeout' | 'crashed' | 'closed'

  constructor(why: JobFailed['why'], options?: ErrorOptions) {
    super(`the job was not done: ${why}`, options)
    this.why = why
  }
}

interface Entry {
  readonly job: unknown
  readonly owner: string
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

interface Slot {
  readonly worker: Worker
  entry: Entry | undefined
  timer: NodeJS.Timeout | undefined
}

/**
 * Runs jobs in worker threads, which are started when first needed. Owners take turns, and an owner
 * has one job running at a time: a thousand jobs of one owner delay the job of another by one.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #slots = new Set<Slot>()
  /** Waiting jobs by owner; the owner whose turn it is comes first. */
  readonly #waiting = new Map<string, Entry[]>()
  readonly #running = new Set<string>()
  #queued = 0
  #closed = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  /** Threads that exist now. */
  get workers(): number {
    return this.#slots.size
  }

  /** The answer of a worker to `job`. @throws JobFailed */
  run(job: unknown, owner: string, signal: AbortSignal): Promise<unknown> {
    const waiting = this.#waiting.get(owner) ?? []
    const { maxQueued, maxQueuedPerOwner } = this.#options
    if (this.#closed) return Promise.reject(new JobFailed('closed'))
    if (this.#queued >= maxQueued || waiting.length >= maxQueuedPerOwner)
      return Promise.reject(new JobFailed('busy'))
    let onAbort = (): void => {}
    const done = new Promise<unknown>((resolve, reject) => {
      const entry: Entry = { job, owner, resolve, reject }
      this.#waiting.set(owner, waiting)
      waiting.push(entry)
      this.#queued++
      onAbort = () => this.#withdraw(entry)
      signal.addEventListener('abort', onAbort)
      if (signal.aborted) onAbort()
      else this.#startNext()
    })
    return done.finally(() => signal.removeEventListener('abort', onAbort))
  }

  /** Ends all workers; jobs that are not done fail. */
  async close(): Promise<void> {
    this.#closed = true
    for (const entry of [...this.#waiting.values()].flat()) entry.reject(new JobFailed('closed'))
    this.#waiting.clear()
    this.#queued = 0
    await Promise.all([...this.#slots].map((slot) => this.#end(slot, new JobFailed('closed'))))
  }

  /** Takes a job back that has not started; nobody waits for one that has. */
  #withdraw(entry: Entry): void {
    const waiting = this.#waiting.get(entry.owner)
    const at = waiting?.indexOf(entry) ?? -1
    if (waiting === undefined || at < 0) return
    this.#removeAt(waiting, at, entry.owner)
    entry.reject(new JobFailed('closed'))
  }

  #removeAt(waiting: Entry[], at: number, owner: string): void {
    waiting.splice(at, 1)
    this.#queued--
    if (waiting.length === 0) this.#waiting.delete(owner)
  }

  #startNext(): void {
    for (const [owner, waiting] of this.#waiting) {
      const [entry] = waiting
      if (entry === undefined || this.#running.has(owner)) continue
      const slot = this.#freeSlot()
      if (slot === undefined) return
      this.#waiting.delete(owner)
      // To the end of the line.
      this.#waiting.set(owner, waiting)
      this.#removeAt(waiting, 0, owner)
      this.#start(slot, entry)
    }
  }

  #freeSlot(): Slot | undefined {
    for (const slot of this.#slots) if (slot.entry === undefined) return slot
    return this.#slots.size < this.#options.maxWorkers ? this.#newSlot() : undefined
  }

  #newSlot(): Slot {
    const worker = new Worker(this.#options.entry, {
      resourceLimits: { maxOldGenerationSizeMb: this.#options.maxHeapMb },
      // Flags of the main thread, such as those of a test runner, are not meant for it.
      execArgv: [],
    })
    const slot: Slot = { worker, entry: undefined, timer: undefined }
    worker.on('message', (result: unknown) => this.#finish(slot, result))
    worker.on('error', (cause) => void this.#end(slot, new JobFailed('crashed', { cause })))
    worker.on('exit', () => void this.#end(slot, new JobFailed('crashed')))
    this.#slots.add(slot)
    return slot
  }

  #start(slot: Slot, entry: Entry): void {
    clearTimeout(slot.timer)
    slot.entry = entry
    slot.worker.ref()
    slot.timer = setTimeout(
      () => void this.#end(slot, new JobFailed('timeout')),
      this.#options.maxJobMs,
    )
    this.#running.add(entry.owner)
    slot.worker.postMessage(entry.job)
  }

  #finish(slot: Slot, result: unknown): void {
    const { entry } = slot
    if (entry === undefined) return
    this.#release(slot, entry)
    // An idle worker keeps nobody from ending the process.
    slot.worker.unref()
    slot.timer = setTimeout(() => void this.#end(slot), this.#options.idleMs).unref()
    entry.resolve(result)
    this.#startNext()
  }

  #release(slot: Slot, entry: Entry): void {
    clearTimeout(slot.timer)
    slot.entry = undefined
    this.#running.delete(entry.owner)
  }

  async #end(slot: Slot, why?: JobFailed): Promise<void> {
    if (!this.#slots.delete(slot)) return
    const { entry } = slot
    clearTimeout(slot.timer)
    if (entry) {
      this.#release(slot, entry)
      entry.reject(why ?? new JobFailed('closed'))
    }
    await slot.worker.terminate()
    if (!this.#closed) this.#startNext()
  }
}
