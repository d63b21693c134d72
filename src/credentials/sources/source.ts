import { Backoff, type Clock } from '../../core/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import { CredentialError } from '../errors.ts'

/** Something that happened to a credential; holds no credential itself. */
export type CredentialEvent =
  /** A plugin is being started. */
  | { readonly type: 'run-start'; readonly command: string }
  /** A plugin has ended, well or not. */
  | {
      readonly type: 'run-end'
      readonly command: string
      readonly durationMs: number
      readonly status: CallStatus
      readonly exitCode: number
      readonly error?: unknown
    }
  /** The plugin policy was asked, and allowed it. */
  | { readonly type: 'allowed'; readonly command: string }
  /** The plugin policy forbids the command. */
  | { readonly type: 'denied'; readonly command: string }
  /** A new credential has taken the place of another. */
  | {
      readonly type: 'rotate'
      /** How long the one before was held. */
      readonly ageMs: number
      /** Whether the client certificate is another one. */
      readonly certificateChanged: boolean
      readonly expiresAt?: number
    }
  /** A credential was fetched, the first one or a later one. */
  | { readonly type: 'fetched'; readonly expiresAt?: number; readonly certificateEndsAt?: number }
  /** No successor could be had. */
  | {
      readonly type: 'refresh-failed'
      readonly error: unknown
      /** How long the present one can still be used; nothing if there is none. */
      readonly usableForMs: number
    }

/** How a call of a plugin ended, in the words of Kubernetes' metrics. */
export type CallStatus =
  | 'no_error'
  | 'plugin_execution_error'
  | 'plugin_not_found_error'
  | 'client_internal_error'

/** Is told what happens to credentials. Must not throw. */
export interface CredentialObserver {
  notify(event: CredentialEvent): void
}

/** An observer that looks away. */
export const nobody: CredentialObserver = { notify: () => {} }

/** A source is used after its end. */
export const disposed = (): CredentialError =>
  new CredentialError('DISPOSED', 'this credential source has been disposed of', {
    hint: 'make a new one',
  })

/** What failed a moment ago is not tried again yet. */
export function backingOff(failure: unknown): CredentialError {
  const known = failure instanceof CredentialError ? failure : undefined
  return new CredentialError(
    'BACKING_OFF',
    known
      ? `${known.message} (a moment ago; not tried again yet)`
      : 'no credential could be had a moment ago; not tried again yet',
    {
      cause: failure,
      ...(known?.command !== undefined && { command: known.command }),
      ...(known?.exitCode !== undefined && { exitCode: known.exitCode }),
      hint: known?.hint ?? 'wait some seconds',
    },
  )
}

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

/** Whether two credentials prove the same in the same way, whatever they say about their end. */
export function provesTheSame(a: Credential, b: Credential): boolean {
  if (a === b) return true
  const others = proofs(b)
  return proofs(a).every((proof, index) => proof === others[index])
}

const proofs = ({ token, basic, clientCertificate }: Credential): (string | undefined)[] => [
  token?.reveal(),
  basic?.username,
  basic?.password.reveal(),
  clientCertificate?.certPem,
  clientCertificate?.keyPem.reveal(),
]

/** A credential that never changes. */
export function staticSource(credential: Credential): CredentialSource {
  return {
    current: async (signal) => {
      signal?.throwIfAborted()
      return credential
    },
    renew: async () => undefined,
    onRotate: () => () => {},
    dispose: () => {},
  }
}

/** Delays between attempts that fail. Without jitter: only one process waits for them. After a quiet time they are short again. */
export const retryBackoff = (clock: Clock): Backoff =>
  new Backoff({ initialMs: 1_000, maxMs: 30_000, jitter: 0, resetAfterMs: 60_000, clock })
