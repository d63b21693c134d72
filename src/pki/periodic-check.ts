import type { Logger } from '../core/index.ts'

/** How often something is looked after. */
export interface PeriodicCheckOptions {
  /** What it is, for the log. */
  readonly name: string
  readonly everyMs?: number
  readonly log: Logger
  /** Aborts to end it. */
  readonly signal: AbortSignal
}

const hourMs = 60 * 60_000

/**
 * Does something every hour until it is told to stop; a failure is logged and tried again the next time.
 * Short steps that compare with the wall clock, not one long timer: clocks jump and machines sleep.
 */
export function checkPeriodically(check: () => Promise<void>, options: PeriodicCheckOptions): void {
  const { name, everyMs = hourMs, log, signal } = options
  if (signal.aborted) return
  let running = false
  const run = async (): Promise<void> => {
    if (running) return
    running = true
    try {
      await check()
    } catch (err) {
      log.error({ err, check: name }, 'periodic check failed')
    } finally {
      running = false
    }
  }
  const timer = setInterval(() => void run(), everyMs).unref()
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
}
