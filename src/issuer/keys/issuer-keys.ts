import type { KeySet, SigningKey } from '../../jose/index.ts'

/** The keys of an issuer at one moment. */
export interface KeyState {
  /** Signs new tokens; always among the published keys. */
  readonly signer: SigningKey
  /** What outsiders are shown. */
  readonly published: KeySet
  /** What this server believes itself: the published keys, and any that are kept to ourselves. */
  readonly accepted: KeySet
  /** How long outsiders may keep the published keys, in seconds. */
  readonly maxAgeSeconds: number
}

/** Keys that may change while the server runs. */
export interface IssuerKeys {
  readonly current: KeyState
  /** Throws while the keys may have changed unseen: nothing may be signed or published then. */
  requireSight(): void
  /** Called after each change; returns how to stop listening. */
  onChange(listener: () => void): () => void
}
