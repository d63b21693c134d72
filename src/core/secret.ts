import { inspect } from 'node:util'

const redacted = '[redacted]'

/** A credential that cannot be printed by accident: only `reveal` gives it away. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The value itself; call only where it goes on the wire or into a private file. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return redacted
  }

  toJSON(): string {
    return redacted
  }

  [inspect.custom](): string {
    return redacted
  }
}
