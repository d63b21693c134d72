import { type Clock, pause, withinTime } from '../../core/index.ts'

/** What is told of an add-on that was started. */
export interface AddonNews {
  /** Its page is there. */
  readonly answers: () => void
  /** It is not there in time, and why; told once, since it may still come. */
  readonly isSilent: (why: string) => void
}

/** How an add-on is asked for. */
export interface AddonQuestion {
  /** Rejects while its page is not there. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>
  /** Why it will never be there, once that is known. */
  readonly problem: () => string | undefined
  /** After which time its silence is told. */
  readonly patienceMs: number
  readonly everyMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Asks until an add-on answers, cannot any more, or the signal aborts; never rejects. */
export async function awaitAddon(question: AddonQuestion, news: AddonNews): Promise<void> {
  const { ask, problem, patienceMs, everyMs, clock, signal } = question
  const impatientAt = clock.monotonic() + patienceMs
  let isTold = false
  const tell = (why: string): void => {
    if (!isTold) news.isSilent(why)
    isTold = true
  }
  while (!signal.aborted) {
    const end = problem()
    if (end !== undefined) return tell(end)
    try {
      await withinTime(patienceMs, signal, ask)
      return news.answers()
    } catch (error) {
      const isOver = signal.aborted || clock.monotonic() < impatientAt
      if (!isOver) tell(problem() ?? reasonOf(error))
    }
    await pause(everyMs, signal)
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : 'it cannot be asked'
