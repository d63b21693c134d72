import { ConnectionFailed } from '../../credentials/transport/index.ts'

/** Why a cluster that was known is not found any more, or not believed. */
export type LocationReason =
  /** Nothing answers at any of the addresses. */
  | 'all-addresses-gone'
  /** What answers shows certificates of none of the roots. */
  | 'all-roots-rotated'
  /** Another cluster answers in its place. */
  | 'different-cluster'
  /** Whether it is the same cluster cannot be told. */
  | 'cluster-id-unknown'
  /** It answers but does not say where it is. */
  | 'location-refused'
  /** It says that it is where it cannot be reached and verified. */
  | 'new-location-unusable'
  /** The entry asks for no verification, so nothing that is learned could be trusted. */
  | 'location-unverifiable'

/** A cluster that was known is lost: `reason` and `code` are for programs, `message` and `hint` for people. */
export class LocationLost extends ConnectionFailed {
  override readonly code: string
  readonly reason: LocationReason
  /** What the user can do about it. */
  readonly hint: string

  constructor(reason: LocationReason, message: string, facts: { hint: string; cause?: unknown }) {
    super(message, { cause: facts.cause })
    this.code = reason.toUpperCase().replaceAll('-', '_')
    this.reason = reason
    this.hint = facts.hint
  }
}

/** What helps when the way to a cluster is lost for good. */
export const discoverAgain =
  'run discovery again with an address and a token from its administrator: `sallyport join ADDRESS --token-file FILE --discovery-only`'
