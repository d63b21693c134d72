import type { Credential, CredentialSource } from '../credential.ts'
import type { RotatingSource } from './rotating-source.ts'
import { disposed } from './source.ts'

/**
 * Sources by what they are made from, so that clients that are built again find the credential of those before.
 * A user who disposes of a share leaves the credential to others; with the last one a fetch that is under way ends, so
 * that no plugin runs for nobody.
 */
export class SourceRegistry {
  readonly #sources = new Map<string, RotatingSource>()
  readonly #users = new WeakMap<RotatingSource, number>()
  readonly #limit: number

  /** Beyond `limit` sources the one that was asked for longest ago is given up. */
  constructor(limit = 1_000) {
    this.#limit = limit
  }

  /** The shared source of a key, made if it is not there. */
  acquire(key: string, make: () => RotatingSource): CredentialSource {
    const source = this.#sources.get(key) ?? make()
    this.#sources.delete(key)
    this.#sources.set(key, source)
    if (this.#sources.size > this.#limit) this.#forgetOldest()
    this.#users.set(source, (this.#users.get(source) ?? 0) + 1)
    return new SharedSource(source, () => this.#release(source))
  }

  #release(source: RotatingSource): void {
    const left = (this.#users.get(source) ?? 1) - 1
    this.#users.set(source, left)
    if (left === 0) source.interrupt()
  }

  /** Gives up every credential: the next request that needs one fetches it anew. */
  clear(): void {
    for (const source of this.#sources.values()) source.clear()
  }

  /** Ends every source, those in use too. */
  dispose(): void {
    for (const source of this.#sources.values()) source.dispose()
    this.#sources.clear()
  }

  #forgetOldest(): void {
    const [oldest] = this.#sources.keys()
    // Not disposed of: somebody may still use it, and it holds nothing but memory.
    if (oldest !== undefined) this.#sources.delete(oldest)
  }
}

/** One user's share in a source. */
class SharedSource implements CredentialSource {
  readonly #source: RotatingSource
  readonly #stops = new Set<() => void>()
  readonly #release: () => void
  #disposed = false

  constructor(source: RotatingSource, release: () => void) {
    this.#source = source
    this.#release = release
  }

  async current(signal?: AbortSignal): Promise<Credential> {
    if (this.#disposed) throw disposed()
    return this.#source.current(signal)
  }

  async renew(
    ...[used, refusal, signal]: Parameters<CredentialSource['renew']>
  ): Promise<Credential | undefined> {
    if (this.#disposed) throw disposed()
    return this.#source.renew(used, refusal, signal)
  }

  onRotate(listener: Parameters<CredentialSource['onRotate']>[0]): () => void {
    const remove = this.#source.onRotate(listener)
    this.#stops.add(remove)
    return () => {
      remove()
      this.#stops.delete(remove)
    }
  }

  dispose(): void {
    if (this.#disposed) return
    this.#disposed = true
    for (const stop of this.#stops) stop()
    this.#stops.clear()
    this.#release()
  }
}

/** The sources of this process. */
export const processRegistry = new SourceRegistry()
