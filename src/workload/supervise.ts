import { aborted, type Clock, hasReason, type Logger, pause } from '../core/index.ts'
import type { ServiceAccountFiles } from './directory/service-account-files.ts'
import type { ProcessEnd, ProcessState } from './pod/pod-object.ts'
import type { RegisteredPod } from './pod/registered-pod.ts'
import type { WorkloadProcess } from './process/child-process.ts'

const retryMs = 5_000
/** After a sleep of the machine timers go on where they were; so they are short, and the clock is asked. */
const filesMs = 30_000
const startingMs = 500
const probeMs = 10_000
const failuresUntilUnready = 3

/** What is kept going while a process runs. */
export interface Supervision {
  readonly pod: Pick<RegisteredPod, 'report' | 'renew' | 'watch'>
  readonly files: Pick<ServiceAccountFiles, 'refresh'>
  readonly process: Pick<WorkloadProcess, 'ended' | 'signal'>
  /** Whether the process serves; absent where there is nothing to ask. */
  readonly probe?: (signal: AbortSignal) => Promise<boolean>
  readonly leaseMs: number
  readonly graceMs: number
  readonly clock: Clock
  readonly log: Logger
  /** Aborts to ask the process to end. */
  readonly drain: AbortSignal
  /** Aborts to end it at once. */
  readonly kill: AbortSignal
}

/** How a workload has ended. */
export interface WorkloadEnd extends ProcessEnd {
  /** True when its Pod was deleted from under it. */
  readonly isEvicted: boolean
}

/** Keeps Pod, Lease and files as fresh as they have to be until the process ends, then tells the cluster how it did. */
export async function supervise(parts: Supervision): Promise<WorkloadEnd> {
  const { pod, process, clock, log } = parts
  const stop = new AbortController()
  const { signal } = stop
  const evicted = new AbortController()
  const startedAt = clock.now()
  const running = [
    keepGoing(
      parts,
      'lease',
      renewing(parts, () => evicted.abort()),
      signal,
    ),
    keepGoing(parts, 'files', () => refreshing(parts), signal),
    keepGoing(parts, 'status', reporting(parts, startedAt), signal),
    pod.watch(() => evicted.abort(), signal),
    ending(parts, AbortSignal.any([parts.drain, evicted.signal]), signal),
  ]
  try {
    const end = await process.ended
    stop.abort()
    await Promise.all(running)
    if (!evicted.signal.aborted) {
      const state = { startedAt, isReady: false, since: clock.now(), end }
      await pod.report(state, AbortSignal.timeout(retryMs)).catch((err: unknown) => {
        log.debug({ err }, 'the cluster was not told how the process ended')
      })
    }
    return { ...end, isEvicted: evicted.signal.aborted }
  } finally {
    stop.abort()
  }
}

/** One round of some work; returns how long to wait until the next. */
type Round = (signal: AbortSignal) => Promise<number>

/** Works round by round; a round that fails is told of and tried again soon. */
async function keepGoing(
  { log, leaseMs }: Supervision,
  what: string,
  make: () => Round,
  signal: AbortSignal,
): Promise<void> {
  const round = make()
  while (!signal.aborted) {
    let waitMs = Math.min(retryMs, leaseMs / 4)
    try {
      waitMs = await round(signal)
    } catch (err) {
      if (!signal.aborted)
        log.warn({ err, what }, 'the workload cannot be kept fresh, trying again')
    }
    await pause(waitMs, signal)
  }
}

/** Renews the Lease. Whoever is refused for longer than it lasts has lost the Pod, and may not even see that it is gone. */
function renewing({ pod, leaseMs, clock }: Supervision, onGone: () => void): () => Round {
  return () => {
    let renewedAt = clock.monotonic()
    return async (signal) => {
      try {
        await pod.renew(signal)
        renewedAt = clock.monotonic()
      } catch (error) {
        const isOver = clock.monotonic() - renewedAt > leaseMs
        if (isOver && hasReason(error, 'Unauthorized', 'Forbidden')) onGone()
        throw error
      }
      return leaseMs / 4
    }
  }
}

const refreshing =
  ({ files, log }: Supervision): Round =>
  async (signal) => {
    if (await files.refresh(signal)) log.debug({}, 'service account files were renewed')
    return filesMs
  }

/** Tells the cluster whether the process serves, whenever that has changed. */
function reporting({ pod, probe, clock }: Supervision, startedAt: number): () => Round {
  return () => {
    let state: ProcessState = { startedAt, isReady: probe === undefined, since: startedAt }
    let told: ProcessState | undefined
    let failures = 0
    return async (signal) => {
      const answers = probe ? await probe(signal) : true
      failures = answers ? 0 : failures + 1
      const isReady = answers || (state.isReady && failures < failuresUntilUnready)
      if (isReady !== state.isReady) state = { startedAt, isReady, since: clock.now() }
      if (told !== state && !signal.aborted) {
        await pod.report(state, signal)
        told = state
      }
      return isReady ? probeMs : startingMs
    }
  }
}

/** Asks the process to end when it is time, and ends it when it takes too long. */
async function ending(
  { process, graceMs, kill }: Supervision,
  wanted: AbortSignal,
  ended: AbortSignal,
): Promise<void> {
  await aborted(AbortSignal.any([wanted, kill, ended]))
  if (ended.aborted) return
  process.signal('SIGTERM')
  await pause(graceMs, AbortSignal.any([kill, ended]))
  if (!ended.aborted) process.signal('SIGKILL')
}
