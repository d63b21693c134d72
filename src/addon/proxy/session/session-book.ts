import type { Clock, KubeObject } from '../../../core/index.ts'
import { Session, type SessionFacts } from './session.ts'

/** Told of every session that begins or ends. */
export type SessionListener = (type: 'ADDED' | 'DELETED', object: KubeObject) => void

/** All sessions that are under way. */
export class SessionBook {
  readonly #clock: Clock
  readonly #open = new Map<string, Session>()
  readonly #listeners = new Set<SessionListener>()
  #revision: number

  constructor(clock: Clock) {
    this.#clock = clock
    // Greater than that of a server that was here before, so that nobody resumes a watch of its sessions.
    this.#revision = Math.floor(clock.now())
  }

  /** The moment that a list shows. */
  get revision(): string {
    return String(this.#revision)
  }

  get size(): number {
    return this.#open.size
  }

  open(facts: SessionFacts): Session {
    const session = new Session(facts, this.#clock)
    this.#open.set(session.name, session)
    this.#tell('ADDED', session)
    return session
  }

  close(session: Session): void {
    if (this.#open.delete(session.name)) this.#tell('DELETED', session)
  }

  get(namespace: string, name: string): Session | undefined {
    const session = this.#open.get(name)
    return session?.facts.namespace === namespace ? session : undefined
  }

  /** Of one namespace, or of all if it is empty. */
  list(namespace: string): Session[] {
    return [...this.#open.values()].filter(
      ({ facts }) => namespace === '' || facts.namespace === namespace,
    )
  }

  onChange(listener: SessionListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends what is too old, and what its user may no longer do if that was not asked for so long. */
  async sweep(recheckMs: number, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic()
    for (const session of this.#open.values()) {
      const overdue = session.overdue(now)
      if (overdue) session.cut(overdue)
      else if (now - session.checkedAt >= recheckMs) await this.#recheck(session, now, signal)
    }
  }

  async #recheck(session: Session, now: number, signal: AbortSignal): Promise<void> {
    session.checkedAt = now
    // What cannot be known is a no.
    const isAllowed = await session.facts.isStillAllowed(signal).catch(() => false)
    if (!isAllowed && !signal.aborted) session.cut('not-authorized')
  }

  #tell(type: 'ADDED' | 'DELETED', session: Session): void {
    this.#revision++
    if (this.#listeners.size === 0) return
    const object = session.toObject(this.revision)
    for (const listener of this.#listeners) listener(type, object)
  }
}
