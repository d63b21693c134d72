import type { IncomingMessage } from 'node:http'
import { availableParallelism } from 'node:os'
import {
  ApiError,
  JobFailed,
  type KubeObject,
  Work,
  WorkExceeded,
  WorkerPool,
  type WorkerPoolOptions,
} from '../../core/index.ts'
import {
  type DecodedBody,
  type FieldValidation,
  inlineWorkLimits,
  type ParsedJson,
} from '../content/index.ts'
import type { PatchType } from '../patch/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import {
  applyParsed,
  type BodyJob,
  type BodyJobAnswer,
  decodeJob,
  parsePatch,
  tooMuchWork,
} from './body-jobs.ts'

/** Who a body comes from: its decoding is theirs to wait for and to pay. */
export interface BodyOwner {
  readonly owner: string
  readonly signal: AbortSignal
}

/** What request bodies are read with, and where their CPU time is charged. */
export interface RequestBodiesDeps {
  /** The whole body, within the server's limits. */
  readonly read: (request: IncomingMessage, signal: AbortSignal) => Promise<Buffer>
  /** Charges CPU time, of this thread or another, to the user who caused it. */
  readonly cpu: { charge(owner: string, ms: number): void }
  readonly pool?: Partial<WorkerPoolOptions>
}

/** A patch that has arrived. */
export interface SentPatch {
  readonly type: PatchType
  readonly bytes: Buffer
  readonly fieldValidation: FieldValidation
  /** Absent when it is too large for the event loop. */
  readonly parsed: ParsedJson | undefined
}

// Workers run compiled code: from the sources, as in tests, that of the last build.
const entry = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/api/serving/body-worker.js' : 'body-worker.js',
  import.meta.url,
)

const defaultPool: WorkerPoolOptions = {
  entry,
  maxWorkers: Math.max(1, Math.min(4, availableParallelism() - 1)),
  maxJobMs: 5_000,
  idleMs: 10_000,
  maxQueued: 256,
  maxQueuedPerOwner: 16,
  maxHeapMb: 256,
}

const failures: Readonly<Record<JobFailed['why'], () => ApiError>> = {
  busy: () =>
    new ApiError('TooManyRequests', 'too many large request bodies, please try again later', {
      details: { retryAfterSeconds: 1 },
    }),
  timeout: () => tooMuchWork('the body takes too long to decode'),
  crashed: () => new ApiError('InternalError', 'the request body could not be decoded'),
  closed: () => new ApiError('ServiceUnavailable', 'the server is shutting down'),
}

/**
 * Makes objects of request bodies. What is small is done at once; a body that turns out to cost more
 * than a few milliseconds goes to a worker thread, and its owner waits for it without holding up
 * anybody else.
 */
export class RequestBodies {
  readonly read: RequestBodiesDeps['read']
  readonly #cpu: RequestBodiesDeps['cpu']
  readonly #pool: WorkerPool

  constructor({ read, cpu, pool }: RequestBodiesDeps) {
    this.read = read
    this.#cpu = cpu
    this.#pool = new WorkerPool({ ...defaultPool, ...pool })
  }

  /** Charges CPU time to the user who caused it. */
  charge(owner: string, ms: number): void {
    this.#cpu.charge(owner, ms)
  }

  /** The object of the expected kind, or the options, in a body. @throws ApiError 400, 413 or 415 */
  async decode(job: Exclude<BodyJob, { type: 'patch' }>, by: BodyOwner): Promise<DecodedBody> {
    const startedAt = performance.now()
    try {
      return await decodeJob(job, new Work(inlineWorkLimits))
    } catch (error) {
      if (!(error instanceof WorkExceeded)) throw error
    } finally {
      this.charge(by.owner, performance.now() - startedAt)
    }
    return this.#elsewhere(job, by)
  }

  /** Reads a patch, so that a malformed one is known before its object is looked up. */
  openPatch(type: PatchType, bytes: Buffer, fieldValidation: FieldValidation): SentPatch {
    try {
      const parsed = parsePatch(type, bytes, new Work(inlineWorkLimits))
      return { type, bytes, fieldValidation, parsed }
    } catch (error) {
      if (!(error instanceof WorkExceeded)) throw error
      return { type, bytes, fieldValidation, parsed: undefined }
    }
  }

  /** What a patch makes of a stored object; at once if that costs little. */
  patch(
    patch: SentPatch,
    stored: Readonly<KubeObject>,
    expected: GroupVersionKind,
    by: BodyOwner,
  ): DecodedBody | Promise<DecodedBody> {
    const { type: patchType, bytes, fieldValidation, parsed } = patch
    if (parsed) {
      try {
        const work = new Work(inlineWorkLimits)
        return applyParsed(parsed, stored, { patchType, expected, fieldValidation, work })
      } catch (error) {
        if (!(error instanceof WorkExceeded)) throw error
      }
    }
    const original = JSON.stringify(stored)
    return this.#elsewhere(
      { type: 'patch', patchType, bytes, original, expected, fieldValidation },
      by,
    )
  }

  /** Worker threads that exist now. */
  get workers(): number {
    return this.#pool.workers
  }

  /** Ends the worker threads. */
  close(): Promise<void> {
    return this.#pool.close()
  }

  async #elsewhere(job: BodyJob, { owner, signal }: BodyOwner): Promise<DecodedBody> {
    const answer = await this.#run(job, owner, signal)
    this.charge(owner, answer.cpuMs)
    if ('exceeded' in answer) throw tooMuchWork(answer.exceeded)
    if ('error' in answer) {
      const { reason, message, details } = answer.error
      throw new ApiError(reason, message, details ? { details } : {})
    }
    return { object: JSON.parse(answer.text), warnings: answer.warnings }
  }

  async #run(job: BodyJob, owner: string, signal: AbortSignal): Promise<BodyJobAnswer> {
    try {
      return (await this.#pool.run(job, owner, signal)) as BodyJobAnswer
    } catch (cause) {
      if (!(cause instanceof JobFailed)) throw cause
      if (cause.why === 'timeout') this.charge(owner, defaultPool.maxJobMs)
      throw failures[cause.why]()
    }
  }
}
