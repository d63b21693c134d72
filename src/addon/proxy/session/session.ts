import { randomUUID } from 'node:crypto'
import type { Clock, KubeObject } from '../../../core/index.ts'
import type { SessionKind } from '../limits/index.ts'
import { sessionApiVersion } from './session-kind.ts'

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
