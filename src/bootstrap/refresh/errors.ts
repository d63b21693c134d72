import { systemErrorCode } from '../../core/index.ts'
import {
  ConnectionFailed,
  failureText,
  NoAddressReachable,
} from '../../credentials/transport/index.ts'

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
const discoverAgain =
  'run discovery again with an address and a token from its administrator: `sallyport join ADDRESS --token-file FILE --discovery-only`'

/** What stands between us and an address. */
type Trouble = 'gone' | 'untrusted' | 'other'

/** What happened at one address. */
export interface AddressFailure {
  readonly address: string
  readonly cause: unknown
}

const goneCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
])

/** OpenSSL's words for a chain that ends at no root of ours. */
const untrustedCode =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT|GET_ISSUER_CERT_LOCALLY|VERIFY_LEAF_SIGNATURE)|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED|INVALID_CA)$/

function troubleOf(error: unknown): Trouble {
  const root = rootCause(error)
  const code = systemErrorCode(root) ?? ''
  if (untrustedCode.test(code)) return 'untrusted'
  const isSilent = root instanceof ConnectionFailed || isTimeout(root)
  return goneCodes.has(code) || isSilent ? 'gone' : 'other'
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && error.name === 'TimeoutError'

const rootCause = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? rootCause(error.cause) : error

/** What failed at which address, out of the failure of a request. */
export function addressFailures(error: unknown, server: string): readonly AddressFailure[] {
  if (error instanceof NoAddressReachable) return error.failures
  if (error instanceof Error && error.cause instanceof NoAddressReachable)
    return error.cause.failures
  return [{ address: server, cause: error }]
}

/** What it means that no address can be used; undefined if it is neither that they are gone nor their roots. */
export function lostBy(failures: readonly AddressFailure[]): LocationLost | undefined {
  const troubles = failures.map(({ cause }) => troubleOf(cause))
  if (troubles.length === 0 || troubles.includes('other')) return undefined
  const each = failures
    .map(({ address, cause }) => `${address}: ${failureText(rootCause(cause))}`)
    .join('; ')
  const [first] = failures
  if (!troubles.includes('untrusted'))
    return new LocationLost(
      'all-addresses-gone',
      `the cluster answers at no address that is known of it: ${each}`,
      {
        hint: `check the network and that the cluster runs; if it has moved while this client was away, ${discoverAgain}`,
        cause: first?.cause,
      },
    )
  return new LocationLost(
    'all-roots-rotated',
    `what answers for the cluster shows a certificate of none of the roots that are known of it: ${each}`,
    {
      hint: `if its CA was replaced while this client was away, ${discoverAgain}; if it was not, somebody else answers there`,
      cause: first?.cause,
    },
  )
}
