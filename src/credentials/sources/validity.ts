import type { Credential } from '../credential.ts'
import { certificateNotAfter } from '../exec/index.ts'

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
