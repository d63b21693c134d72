import { randomUUID } from 'node:crypto'
import { aborted, type Clock, type Kind, type KubeObject, withinTime } from '../../core/index.ts'
import type { SessionKind } from './limits.ts'

/** Live sessions of the proxy: read them, watch them, delete one to cut it. */
export const sessionKind: Kind = {
  group: 'addon.sallyport.dev',
  version: 'v1alpha1',
  kind: 'Session',
  resource: 'sessions',
  namespaced: true,
}

/** The `apiVersion` of sessions. */
const sessionApiVersion = `${sessionKind.group}/${sessionKind.version}`

/** Why a session was ended by us, in one word for the audit log and the metrics. */
export type CutReason =
  | 'revoked'
  | 'not-authorized'
  | 'credential-expired'
  | 'max-age'
  | 'idle'
  | 'deleted'
  | 'shutdown'
  | 'client-gone'

/** What is known of a session when it begins. */
export interface SessionFacts {
  readonly kind: SessionKind
  readonly namespace: string
  /** As the URL names it, for example `services/web:80`. */
  readonly target: string
  readonly user: string
  readonly method: string
  readonly endpoint: string
  /** By what the add-on learns its user, if it does. */
  readonly identity: string
  readonly auditId: string
  readonly maxAgeMs: number
  readonly idleMs: number
  /** Why the user may no longer do what the session does; `undefined` while they may. */
  readonly lostRight: (signal: AbortSignal) => Promise<CutReason | undefined>
}

/** A request or tunnel under way, which can be counted, shown and cut. */
export class Session {
  readonly facts: SessionFacts
  readonly name = randomUUID()
  readonly startedAt: number
  readonly #clock: Clock
  readonly #began: number
  readonly #cut = new AbortController()
  #lastByteAt: number
  #toBackend = 0
  #toClient = 0
  #reason: CutReason | undefined
  /** Monotonic milliseconds of the last check of the user's rights. */
  checkedAt: number

  constructor(facts: SessionFacts, clock: Clock) {
    this.facts = facts
    this.#clock = clock
    this.startedAt = clock.now()
    this.#began = clock.monotonic()
    this.#lastByteAt = this.#began
    this.checkedAt = this.#began
  }

  /** Aborts when the session is cut. */
  get signal(): AbortSignal {
    return this.#cut.signal
  }

  get reason(): CutReason | undefined {
    return this.#reason
  }

  passed(direction: 'toBackend' | 'toClient', bytes: number): void {
    this.#lastByteAt = this.#clock.monotonic()
    if (direction === 'toBackend') this.#toBackend += bytes
    else this.#toClient += bytes
  }

  /** Ends it; the first reason counts. */
  cut(reason: CutReason): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#cut.abort(new Error(`the session was ended: ${reason}`))
  }

  /** Milliseconds since it began. */
  ageAt(now: number): number {
    return now - this.#began
  }

  /** Why its time is over, if it is. */
  overdue(now: number): CutReason | undefined {
    if (this.ageAt(now) >= this.facts.maxAgeMs) return 'max-age'
    return now - this.#lastByteAt >= this.facts.idleMs ? 'idle' : undefined
  }

  /** The session as an object of the API. */
  toObject(resourceVersion: string): KubeObject {
    const { kind, namespace, target, user, method, endpoint, identity, maxAgeMs } = this.facts
    const time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
    return {
      apiVersion: sessionApiVersion,
      kind: 'Session',
      metadata: {
        name: this.name,
        namespace,
        uid: this.name,
        resourceVersion,
        creationTimestamp: time(this.startedAt),
      },
      spec: { user, type: kind, target, method, endpoint, identity, auditID: this.facts.auditId },
      status: {
        bytesToBackend: this.#toBackend,
        bytesToClient: this.#toClient,
        endsBefore: time(this.startedAt + maxAgeMs),
      },
    }
  }
}

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
