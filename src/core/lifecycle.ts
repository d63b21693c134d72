import { withinTime } from './abort.ts'
import type { Logger } from './logger.ts'

/** Something that runs until it is stopped. */
export interface Component {
  readonly name: string
  /** Resolves when ready to serve. */
  start(): Promise<void>
  /** Stops accepting, drains until `deadline` aborts, then cuts. Safe to call twice, and after a failed start. */
  stop(deadline: AbortSignal): Promise<void>
  /** Rejects if the component dies on its own after `start`. */
  readonly failed: Promise<never>
}

/** How a set of components is run. */
export interface RunOptions {
  /** Aborts to ask for an orderly end. */
  readonly drain: AbortSignal
  /** Aborts to end at once. */
  readonly kill: AbortSignal
  readonly graceMs: number
  readonly log: Logger
  /** Called once all components have started. */
  readonly onReady?: () => void
}

/** A `failed` promise for components that cannot die on their own. */
export function neverFails(): Promise<never> {
  return new Promise<never>(() => {})
}

/** Resolves when `signal` aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Starts in order, waits for `drain` or the first failure, stops in reverse order. */
export async function runUntilDrained(
  components: readonly Component[],
  options: RunOptions,
): Promise<void> {
  const started: Component[] = []
  const failure = Promise.race(components.map((component) => component.failed))
  failure.catch(() => {}) // awaited below; must not count as unhandled meanwhile
  try {
    for (const component of components) {
      started.unshift(component)
      await Promise.race([component.start(), failure])
    }
    options.onReady?.()
    await Promise.race([aborted(options.drain), failure])
  } finally {
    await withinTime(options.graceMs, options.kill, async (deadline) => {
      for (const component of started) {
        // A failed stop is logged, not thrown: it must not hide why we are stopping.
        await component.stop(deadline).catch((err: unknown) => {
          options.log.error({ err, component: component.name }, 'stop failed')
        })
      }
    })
  }
}

type Close = (deadline: AbortSignal) => void | Promise<void>

/** What has been opened and how it is closed: the last one first, each even if another fails. */
export class Closers {
  readonly #log: Logger
  readonly #stack: { readonly name: string; readonly close: Close }[] = []

  constructor(log: Logger) {
    this.#log = log
  }

  add(name: string, close: Close): void {
    this.#stack.push({ name, close })
  }

  async closeAll(deadline: AbortSignal): Promise<void> {
    for (let next = this.#stack.pop(); next; next = this.#stack.pop()) {
      try {
        await next.close(deadline)
      } catch (err) {
        this.#log.error({ err, part: next.name }, 'could not be closed')
      }
    }
  }
}
