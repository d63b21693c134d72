import { type Backoff, type Clock, unlessAborted } from '../../core/index.ts'
import type { Credential, CredentialSource, Refusal } from '../credential.ts'
import { certificateNotAfter } from '../exec/index.ts'
import {
  backingOff,
  type CredentialObserver,
  disposed,
  provesTheSame,
  type RotateListener,
  RotateListeners,
  retryBackoff,
} from './source.ts'

/** How the time of a credential is divided. */
export interface ValidityRules {
  /** A credential is not used in its last moments, in which it could expire on its way. */
  readonly skewMs: number
  /** How long a credential is used after it was fetched, even if it says that it has expired. */
  readonly minimumMs: number
  /** The longest time before the end at which a successor is fetched. */
  readonly aheadMs: number
  /** From 0 to 1, different for every credential. */
  readonly jitter: number
}

/** When a credential is to be replaced, in milliseconds since 1970. */
export interface Validity {
  /** From here on a successor is fetched while this one is still used. */
  readonly refreshAt: number
  /** From here on it is not used any more. */
  readonly usableUntil: number
}

/** When a credential expires: by its own word or with its client certificate, whichever is first. */
export function expiryOf(credential: Credential): number | undefined {
  const ends = [credential.expiresAt, certificateEnd(credential)].filter((end) => end !== undefined)
  return ends.length > 0 ? Math.min(...ends) : undefined
}

/** The end of the client certificate, if there is one that can be read. */
export function certificateEnd({ clientCertificate }: Credential): number | undefined {
  return clientCertificate && certificateNotAfter(clientCertificate.certPem)
}

/** Plans the life of a credential that was fetched at `fetchedAt`. */
export function planValidity(
  credential: Credential,
  fetchedAt: number,
  rules: ValidityRules,
): Validity {
  const expiry = expiryOf(credential)
  if (expiry === undefined) {
    return { refreshAt: Number.POSITIVE_INFINITY, usableUntil: Number.POSITIVE_INFINITY }
  }
  const soonest = fetchedAt + rules.minimumMs
  const regular = expiry - rules.skewMs
  // One that comes with next to no time left is used for a moment, or its own request could not be made.
  if (regular <= soonest) return { refreshAt: soonest, usableUntil: soonest }
  const ahead = Math.min(rules.aheadMs, (expiry - fetchedAt) / 10)
  // Chance spreads clients that started together.
  const refreshAt = regular - ahead * (1 - rules.jitter / 2)
  return { refreshAt: Math.max(refreshAt, soonest), usableUntil: regular }
}

/** Times of the rotation that may be changed. */
export interface RotationTimes {
  /** How long before its end a credential counts as expired; 10 s unless given. */
  readonly skewMs?: number
  /** How long a fresh credential is used whatever it says; 5 s unless given. */
  readonly minimumValidityMs?: number
  /** How long before its end a successor is fetched at most; 60 s unless given, 0 for never. */
  readonly refreshAheadMs?: number
}

/** Fetches a new credential; the refusal is there if the server's answer was the cause. */
export type FetchCredential = (
  refusal: Refusal | undefined,
  signal: AbortSignal,
) => Promise<Credential>

/** What a rotating source is made of. */
export interface RotationParts {
  readonly fetch: FetchCredential
  readonly clock: Clock
  readonly observer: CredentialObserver
  readonly times?: RotationTimes
  /** From 0 to 1. */
  readonly random?: () => number
}

interface Held extends Validity {
  readonly credential: Credential
  readonly fetchedAt: number
}

/**
 * Holds a credential until it expires and fetches its successor in time: one fetch at a time, whoever waits. Nothing
 * is fetched without a caller, so that nobody who went away is asked for a password.
 */
export class RotatingSource implements CredentialSource {
  readonly #parts: RotationParts
  readonly #failures: Backoff
  readonly #refusals: Backoff
  readonly #listeners = new RotateListeners()
  #end = new AbortController()
  #isDisposed = false
  #held: Held | undefined
  #fetching: Promise<Credential> | undefined
  #failure: unknown

  constructor(parts: RotationParts) {
    this.#parts = parts
    this.#failures = retryBackoff(parts.clock)
    this.#refusals = retryBackoff(parts.clock)
  }

  async current(signal?: AbortSignal): Promise<Credential> {
    this.#check(signal)
    const held = this.#usable()
    if (!held) return unlessAborted(this.#fetchOrFail(), signal)
    if (this.#parts.clock.now() >= held.refreshAt && this.#mayFetch()) {
      this.#fetch(undefined).catch(() => {}) // told to the observer; this one is still good
    }
    return held.credential
  }

  async renew(
    used: Credential,
    refusal: Refusal,
    signal?: AbortSignal,
  ): Promise<Credential | undefined> {
    this.#check(signal)
    const held = this.#usable()
    if (held && !provesTheSame(held.credential, used)) return held.credential
    const next = this.#fetching ?? this.#fetchRefused(refusal)
    const renewed = await unlessAborted(
      // Why it failed is told to the observer; to the caller the server's refusal is the answer.
      next.catch(() => undefined),
      signal,
    )
    return renewed && !provesTheSame(renewed, used) ? renewed : undefined
  }

  onRotate(listener: RotateListener): () => void {
    return this.#listeners.add(listener)
  }

  /** Gives up the credential and forgets all failures, as after a new login; who uses it is told of its successor. */
  clear(): void {
    if (this.#held) this.#held = { ...this.#held, usableUntil: Number.NEGATIVE_INFINITY }
    this.#failure = undefined
    this.#failures.reset()
    this.#refusals.reset()
  }

  /** Ends a fetch that is under way; the credential stays for the next user. */
  interrupt(): void {
    this.#end.abort(disposed())
    this.#end = new AbortController()
    this.#fetching = undefined
  }

  dispose(): void {
    this.#isDisposed = true
    this.#held = undefined
    this.#listeners.clear()
    this.interrupt()
  }

  #check(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted()
    if (this.#isDisposed) throw disposed()
  }

  #usable(): Held | undefined {
    const held = this.#held
    return held && this.#parts.clock.now() < held.usableUntil ? held : undefined
  }

  #mayFetch(): boolean {
    return !this.#fetching && this.#failures.isDue
  }

  #fetchOrFail(): Promise<Credential> {
    if (this.#fetching || this.#mayFetch()) return this.#fetch(undefined)
    return Promise.reject(backingOff(this.#failure))
  }

  async #fetchRefused(refusal: Refusal): Promise<Credential | undefined> {
    if (!this.#refusals.isDue || !this.#mayFetch()) return undefined
    this.#refusals.next()
    return this.#fetch(refusal)
  }

  #fetch(refusal: Refusal | undefined): Promise<Credential> {
    if (this.#fetching) return this.#fetching
    const fetching = this.#run(refusal).finally(() => {
      if (this.#fetching === fetching) this.#fetching = undefined
    })
    this.#fetching = fetching
    return fetching
  }

  async #run(refusal: Refusal | undefined): Promise<Credential> {
    const { fetch } = this.#parts
    const { signal } = this.#end
    try {
      const credential = await fetch(refusal, signal)
      signal.throwIfAborted()
      this.#failures.reset()
      return this.#hold(credential)
    } catch (error) {
      // Says nothing about the next attempt.
      if (signal.aborted && !this.#isDisposed) throw disposed()
      this.#failure = error
      this.#failures.next()
      this.#notifyFailure(error)
      throw error
    }
  }

  #hold(credential: Credential): Credential {
    const { clock, observer, random = Math.random } = this.#parts
    const {
      skewMs = 10_000,
      minimumValidityMs = 5_000,
      refreshAheadMs = 60_000,
    } = this.#parts.times ?? {}
    const fetchedAt = clock.now()
    const before = this.#held
    const validity = planValidity(credential, fetchedAt, {
      skewMs,
      minimumMs: minimumValidityMs,
      aheadMs: refreshAheadMs,
      jitter: random(),
    })
    this.#held = { credential, fetchedAt, ...validity }
    observer.notify({ type: 'fetched', ...endsOf(credential) })
    if (before) this.#rotate(before, this.#held)
    return credential
  }

  #rotate(before: Held, now: Held): void {
    if (provesTheSame(before.credential, now.credential)) return
    const expiresAt = expiryOf(now.credential)
    this.#parts.observer.notify({
      type: 'rotate',
      ageMs: now.fetchedAt - before.fetchedAt,
      certificateChanged:
        before.credential.clientCertificate?.certPem !== now.credential.clientCertificate?.certPem,
      ...(expiresAt !== undefined && { expiresAt }),
    })
    this.#listeners.call(now.credential, before.credential)
  }

  #notifyFailure(error: unknown): void {
    const held = this.#usable()
    const usableForMs = held ? held.usableUntil - this.#parts.clock.now() : 0
    this.#parts.observer.notify({ type: 'refresh-failed', error, usableForMs })
  }
}

function endsOf(credential: Credential): { expiresAt?: number; certificateEndsAt?: number } {
  const expiresAt = expiryOf(credential)
  const certificateEndsAt = certificateEnd(credential)
  return {
    ...(expiresAt !== undefined && { expiresAt }),
    ...(certificateEndsAt !== undefined && { certificateEndsAt }),
  }
}
