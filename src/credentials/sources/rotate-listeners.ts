import type { Credential } from '../credential.ts'

/** Is told of a replacement. */
export type RotateListener = (next: Credential, previous: Credential) => void

/** Those who want to know when a credential is replaced. */
export class RotateListeners {
  readonly #listeners = new Set<{ readonly call: RotateListener }>()

  get size(): number {
    return this.#listeners.size
  }

  /** Adds one, even if it is there already; returns how to remove it. */
  add(listener: RotateListener): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  call(next: Credential, previous: Credential): void {
    for (const listener of Array.from(this.#listeners)) listener.call(next, previous)
  }

  clear(): void {
    this.#listeners.clear()
  }
}
