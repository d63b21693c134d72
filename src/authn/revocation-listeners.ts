interface Entry {
  readonly keys: readonly string[]
  readonly listener: () => void
}

/** Open streams, found by what would revoke them; each is called at most once. */
export class RevocationListeners {
  readonly #byKey = new Map<string, Set<Entry>>()
  readonly #onError: (error: unknown) => void

  /** One that throws must not keep the others from being called. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  add(keys: readonly string[], listener: () => void): () => void {
    const entry = { keys, listener }
    for (const key of keys) {
      const known = this.#byKey.get(key)
      if (known) known.add(entry)
      else this.#byKey.set(key, new Set([entry]))
    }
    return () => this.#remove(entry)
  }

  /** Calls those who wait for one of the keys. */
  call(keys: Iterable<string>): void {
    for (const key of keys) {
      for (const entry of this.#byKey.get(key) ?? []) this.#callOnce(entry)
    }
  }

  callAll(): void {
    this.call([...this.#byKey.keys()])
  }

  #callOnce(entry: Entry): void {
    this.#remove(entry)
    try {
      entry.listener()
    } catch (error) {
      this.#onError(error)
    }
  }

  #remove(entry: Entry): void {
    for (const key of entry.keys) {
      const known = this.#byKey.get(key)
      known?.delete(entry)
      if (known?.size === 0) this.#byKey.delete(key)
    }
  }
}
