/** A value as of its last change. */
export interface SealedValue {
  readonly value: Buffer
  /** Changes with the value. */
  readonly version: number
}

/**
 * Small secrets that a server keeps for itself and shares with its replicas, such as signing keys.
 * No path of the API leads to them, and they are encrypted where they are kept.
 */
export interface SealedValues {
  /** As new as any acknowledged write of any replica. */
  get(name: string, signal: AbortSignal): Promise<SealedValue | undefined>
  /**
   * Replaces what `change` gets by what it returns; `undefined` leaves everything as it is. It is
   * called again when another replica was faster. Resolves to whether something was written.
   */
  change(
    name: string,
    change: (present: Buffer | undefined) => Buffer | undefined,
    signal: AbortSignal,
  ): Promise<boolean>
  /** Calls back after each change, also of other replicas, until the signal aborts. */
  watch(name: string, listener: (changed: SealedValue) => void, signal: AbortSignal): void
}
