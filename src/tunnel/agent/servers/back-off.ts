import type { Clock } from '../../../core/index.ts'

const factor = 1.5
const jitter = 0.1

/** How long what has failed is left alone. */
export interface BackOffParts {
  readonly firstMs: number
  readonly capMs: number
  readonly clock: Clock
  /** A number from 0 to 1, for jitter. */
  readonly random: () => number
}

/** Knows when to try again what has failed: after pauses that grow up to a cap, for each by itself. */
export class BackOff {
  readonly #parts: BackOffParts
  readonly #failed = new Map<string, { readonly nextMs: number; readonly dueAt: number }>()

  constructor(parts: BackOffParts) {
    this.#parts = parts
  }

  isDue(name: string): boolean {
    const failure = this.#failed.get(name)
    return failure === undefined || this.#parts.clock.monotonic() >= failure.dueAt
  }

  /** How long until the next thing is due that is not yet. */
  get soonestMs(): number {
    const now = this.#parts.clock.monotonic()
    const waits = [...this.#failed.values()].map(({ dueAt }) => dueAt - now)
    return Math.min(...waits.filter((ms) => ms > 0))
  }

  failed(name: string): void {
    const { firstMs, capMs, clock, random } = this.#parts
    const pauseMs = this.#failed.get(name)?.nextMs ?? firstMs
    const dueAt = clock.monotonic() + pauseMs * (1 + jitter * random())
    this.#failed.set(name, { nextMs: Math.min(pauseMs * factor, capMs), dueAt })
  }

  succeeded(name: string): void {
    this.#failed.delete(name)
  }

  /** Forgets all but these. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#failed.keys()) if (!names.has(name)) this.#failed.delete(name)
  }
}
