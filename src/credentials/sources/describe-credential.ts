import { X509Certificate } from 'node:crypto'
import type { Credential } from '../credential.ts'
import { claimedExpiry, unverifiedClaims } from './unverified-claims.ts'
import { expiryOf } from './validity.ts'

/** What can be shown of a credential to anybody. */
export interface CredentialDescription {
  readonly token?: {
    readonly form: 'jwt' | 'opaque'
    readonly characters: number
    /** What the token says of itself; nobody has checked its signature. */
    readonly claims?: Readonly<Record<string, unknown>>
  }
  readonly basic?: { readonly username: string }
  readonly clientCertificate?: CertificateDescription
  /** Milliseconds since 1970: the first end of all its parts. */
  readonly expiresAt?: number
}

/** What a client certificate says. */
export interface CertificateDescription {
  readonly subject: string
  readonly issuer: string
  readonly serialNumber: string
  /** Milliseconds since 1970. */
  readonly notBefore: number
  readonly notAfter: number
}

/** Describes a credential without giving any of it away. */
export function describeCredential(credential: Credential): CredentialDescription {
  const { token, basic, clientCertificate } = credential
  const certificate = clientCertificate && describeCertificate(clientCertificate.certPem)
  const ends = [expiryOf(credential), token && claimedExpiry(token.reveal())].filter(
    (end) => end !== undefined,
  )
  return {
    ...(token && { token: describeToken(token.reveal()) }),
    ...(basic && { basic: { username: basic.username } }),
    ...(certificate && { clientCertificate: certificate }),
    ...(ends.length > 0 && { expiresAt: Math.min(...ends) }),
  }
}

function describeToken(token: string): NonNullable<CredentialDescription['token']> {
  const claims = unverifiedClaims(token)
  if (!claims) return { form: 'opaque', characters: token.length }
  return { form: 'jwt', characters: token.length, claims: withoutSecrets(claims) }
}

/** Issuers put tokens of others and values that log somebody in into claims with such names. */
const secretName = /token|secret|password|nonce|_hash$|^sid$|^jti$/i

function withoutSecrets(claims: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const entries = Object.entries(claims).map(([name, value]) => [
    name,
    secretName.test(name) ? '[redacted]' : value,
  ])
  return Object.fromEntries(entries) as Record<string, unknown>
}

function describeCertificate(pem: string): CertificateDescription | undefined {
  try {
    const { subject, issuer, serialNumber, validFrom, validTo } = new X509Certificate(pem)
    return {
      subject: oneLine(subject),
      issuer: oneLine(issuer),
      serialNumber,
      notBefore: Date.parse(validFrom),
      notAfter: Date.parse(validTo),
    }
  } catch {
    return undefined
  }
}

const oneLine = (name: string): string => name.split('\n').join(', ')
