import type { TrustSource } from '../provider/transport-config.ts'

/** Authorities that never change. */
export function staticTrust(pem: string): TrustSource {
  return { current: async () => pem, onChange: () => () => {}, dispose: () => {} }
}

/** Authorities that their owner replaces. */
export class ReplaceableTrust implements TrustSource {
  readonly #listeners = new Set<() => void>()
  #pem: string

  constructor(pem: string) {
    this.#pem = pem
  }

  current(): Promise<string> {
    return Promise.resolve(this.#pem)
  }

  /** Believes these from the next connection on. */
  replace(pem: string): void {
    if (pem === this.#pem) return
    this.#pem = pem
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  dispose(): void {
    this.#listeners.clear()
  }
}
