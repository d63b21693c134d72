import { aborted, type Clock, type KubeObject, withinTime } from '../../../core/index.ts'
import { type CutReason, Session, type SessionFacts } from './session.ts'

/** A session that began or ended, with the revision of that moment. */
export interface SessionEvent {
  readonly type: 'ADDED' | 'DELETED'
  readonly object: KubeObject
  readonly revision: number
}

/** How many events are kept for those who come back. */
const maxHistory = 1_024

/** Requests that are over sooner are not shown: they would come and go faster than anybody reads. */
const shownAfterMs = 1_000

/** All sessions that are under way. */
export class SessionBook {
  readonly #clock: Clock
  readonly #open = new Map<string, Session>()
  /** Those that are shown. */
  readonly #shown = new Set<Session>()
  readonly #listeners = new Set<(event: SessionEvent) => void>()
  readonly #history: SessionEvent[] = []
  /** Greater than that of a server that was here before, so that nobody resumes a watch of its sessions. */
  #revision: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#revision = Math.floor(clock.now())
  }

  get revision(): number {
    return this.#revision
  }

  /** All that are open, shown or not. */
  get size(): number {
    return this.#open.size
  }

  open(facts: SessionFacts): Session {
    const session = new Session(facts, this.#clock)
    this.#open.set(session.name, session)
    if (facts.kind === 'Tunnel') this.#show(session)
    return session
  }

  close(session: Session): void {
    this.#open.delete(session.name)
    if (this.#shown.delete(session)) this.#tell('DELETED', session)
  }

  get(namespace: string, name: string): Session | undefined {
    const session = this.#open.get(name)
    return session?.facts.namespace === namespace ? session : undefined
  }

  /** Those that are shown, of one namespace or of all if it is empty. */
  list(namespace: string): Session[] {
    return [...this.#shown].filter(({ facts }) => namespace === '' || facts.namespace === namespace)
  }

  /** Tells of all changes after a revision; `undefined` when that is too long ago. */
  follow(after: number, listener: (event: SessionEvent) => void): (() => void) | undefined {
    const missed = this.#history.filter(({ revision }) => revision > after)
    if (missed.length !== this.#revision - after) return undefined
    for (const event of missed) listener(event)
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Ends what is too old, at once, and what its user may no longer do, if that was not asked for so long: all of these
   * are asked about together, and an answer that does not come within another period is a no.
   */
  async sweep(recheckMs: number, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic()
    const due: Session[] = []
    for (const session of this.#open.values()) {
      const overdue = session.overdue(now)
      if (overdue) session.cut(overdue)
      else if (now - session.checkedAt >= recheckMs) due.push(session)
      if (session.ageAt(now) >= shownAfterMs && this.#open.has(session.name)) this.#show(session)
    }
    if (due.length === 0) return
    for (const session of due) session.checkedAt = now
    await withinTime(recheckMs, signal, async (within) => {
      const late = aborted(within).then(() => unsure)
      await Promise.all(due.map((session) => recheck(session, { signal, within, late })))
    })
  }

  #show(session: Session): void {
    if (this.#shown.has(session)) return
    this.#shown.add(session)
    this.#tell('ADDED', session)
  }

  #tell(type: 'ADDED' | 'DELETED', session: Session): void {
    this.#revision++
    const event = {
      type,
      object: session.toObject(String(this.#revision)),
      revision: this.#revision,
    }
    this.#history.push(event)
    if (this.#history.length > maxHistory) this.#history.shift()
    for (const listener of this.#listeners) listener(event)
  }
}

/** A check that cannot be made is a no. */
const unsure: CutReason = 'not-authorized'

interface Recheck {
  readonly signal: AbortSignal
  readonly within: AbortSignal
  /** The answer once `within` aborts. */
  readonly late: Promise<CutReason>
}

async function recheck(session: Session, { signal, within, late }: Recheck): Promise<void> {
  const answered = session.facts.lostRight(within).catch(() => unsure)
  const lost = await Promise.race([answered, late])
  if (lost && !signal.aborted) session.cut(lost)
}
