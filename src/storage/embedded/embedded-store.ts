import { LocalStore } from '../local-store.ts'
import type { Mirror } from '../mirror/mirror.ts'
import type { Durability } from './write/durability.ts'

/** A store in files of one directory. */
export class EmbeddedStore extends LocalStore {
  readonly #durability: Durability
  #closing: Promise<void> | undefined

  constructor(mirror: Mirror, durability: Durability) {
    super(mirror, (events) => durability.persist(events))
    this.#durability = durability
  }

  /** Why the last write failed, as long as no later one has succeeded; for health checks. */
  get failure(): unknown {
    return this.#durability.failure
  }

  override close(): Promise<void> {
    this.#closing ??= super.close().then(() => this.#durability.close())
    return this.#closing
  }
}
