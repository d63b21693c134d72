import type { CompactJws } from '../../jose/index.ts'
import type { AddonVerificationKey } from './verification-key.ts'

/** Where a verifier finds the key that a token names. */
export interface AddonKeySource {
  /** For messages and metrics. */
  readonly name: string
  /** The key; undefined if the token does not name one that this source could know. Throws AddonTokenRefused. */
  find(
    jws: CompactJws,
  ): AddonVerificationKey | undefined | Promise<AddonVerificationKey | undefined>
  /** Why it can know no key at the moment, if so. */
  readonly problem?: 'keys-unavailable' | undefined
  /** Called whenever a key is no longer believed. */
  onLess?(listener: () => void): void
}
