import { X509Certificate } from 'node:crypto'
import { isRecord } from '../../core/index.ts'
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
  /** Absent if there is none that can be read. */
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
  const told = [expiryOf(credential), token && claimedExpiry(token.reveal())]
  const ends = told.filter((end) => end !== undefined).filter(isOnCalendar)
  return {
    ...(token && { token: describeToken(token.reveal()) }),
    ...(basic && { basic: { username: basic.username } }),
    ...(certificate && { clientCertificate: certificate }),
    ...(ends.length > 0 && { expiresAt: Math.min(...ends) }),
  }
}

/** An end that no date can express is none. */
const isOnCalendar = (epochMs: number): boolean => !Number.isNaN(new Date(epochMs).getTime())

function describeToken(token: string): NonNullable<CredentialDescription['token']> {
  const claims = unverifiedClaims(token)
  if (!claims) return { form: 'opaque', characters: token.length }
  return { form: 'jwt', characters: token.length, claims: withoutSecrets(claims) }
}

/** Issuers put tokens of others and values that log somebody in into claims with such names. */
const secretName = /token|secret|password|nonce|_hash$|^sid$|^jti$/i

/** Deeper than any claim that somebody reads. */
const maxDepth = 8

function withoutSecrets(
  claims: Readonly<Record<string, unknown>>,
  depth = 0,
): Record<string, unknown> {
  const entries = Object.entries(claims).map(([name, value]) => [
    name,
    secretName.test(name) ? '[redacted]' : withoutSecretsWithin(value, depth + 1),
  ])
  return Object.fromEntries(entries) as Record<string, unknown>
}

function withoutSecretsWithin(value: unknown, depth: number): unknown {
  if (depth > maxDepth) return '[too deep]'
  if (Array.isArray(value)) return value.map((each) => withoutSecretsWithin(each, depth + 1))
  return isRecord(value) ? withoutSecrets(value, depth) : value
}

function describeCertificate(pem: string): CertificateDescription | undefined {
  try {
    const { subject, issuer, serialNumber, validFrom, validTo } = new X509Certificate(pem)
    const [notBefore, notAfter] = [Date.parse(validFrom), Date.parse(validTo)]
    if (Number.isNaN(notBefore + notAfter)) return undefined
    const names = { subject: oneLine(subject), issuer: oneLine(issuer) }
    return { ...names, serialNumber, notBefore, notAfter }
  } catch {
    return undefined
  }
}

const oneLine = (name: string): string => name.split('\n').join(', ')
