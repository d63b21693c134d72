import type { Logger } from '../../core/index.ts'

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
