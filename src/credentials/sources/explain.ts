import { X509Certificate } from 'node:crypto'
import { isRecord } from '../../core/index.ts'
import type { ResolvedContext } from '../../kubeconfig/index.ts'
import type { Credential } from '../credential.ts'
import { expiryOf } from './rotating-source.ts'

/** A way in which a user of a kubeconfig can prove who they are. */
export type CredentialKind =
  | 'client-certificate'
  | 'token'
  | 'token-file'
  | 'basic'
  | 'exec'
  | 'auth-provider'

/** One credential of a user, and why it is used or not. */
export interface ExplainedCredential {
  readonly kind: CredentialKind
  /** Where it comes from: a file, a command, a provider's name; never the credential itself. */
  readonly from: string
  readonly reason: string
}

/** Which credentials of a context count, and which are there but do not. */
export interface CredentialExplanation {
  readonly used: readonly ExplainedCredential[]
  readonly ignored: readonly ExplainedCredential[]
}

interface Present {
  readonly kind: CredentialKind
  readonly from: string
}

/** Says which credentials count, by kubectl's rules; `overHttp` for those who insist on sending them in clear. */
export function explainChoice(
  { cluster, user }: Pick<ResolvedContext, 'cluster' | 'user'>,
  overHttp = false,
): CredentialExplanation {
  const present = credentialsIn(user)
  if (!overHttp && new URL(cluster.server).protocol === 'http:') {
    const reason = 'the server is http://, where anybody on the way could read it'
    return { used: [], ignored: present.map((credential) => ({ ...credential, reason })) }
  }
  const winners = winnersAmong(present, user.username !== undefined)
  const isAlone = present.length === 1
  const judged = present.map((credential) => ({
    credential,
    ...judge(credential.kind, winners, isAlone),
  }))
  const only = (counts: boolean): ExplainedCredential[] =>
    judged
      .filter((each) => each.counts === counts)
      .map(({ credential, reason }) => ({ ...credential, reason }))
  return { used: only(true), ignored: only(false) }
}

/** What goes into the `Authorization` header, the strongest first, and why. */
const headerReasons = {
  'token-file': 'a token file goes before everything else in the header',
  token: 'a token goes before a plugin',
  basic: 'username and password go before a plugin',
} as const

type HeaderKind = keyof typeof headerReasons

interface Winners {
  readonly header: HeaderKind | undefined
  readonly certificate: 'client-certificate' | undefined
}

function winnersAmong(present: readonly Present[], hasUsername: boolean): Winners {
  const has = (kind: CredentialKind): boolean => present.some((each) => each.kind === kind)
  const header = (['token-file', 'token', 'basic'] as const).find(
    (kind) => has(kind) && (kind !== 'basic' || hasUsername),
  )
  return { header, certificate: has('client-certificate') ? 'client-certificate' : undefined }
}

interface Judgement {
  readonly counts: boolean
  readonly reason: string
}

const used = (reason: string): Judgement => ({ counts: true, reason })
const ignored = (reason: string): Judgement => ({ counts: false, reason })

function judge(
  kind: CredentialKind,
  { header, certificate }: Winners,
  isAlone: boolean,
): Judgement {
  if (kind === 'client-certificate') return used('a client certificate is part of every connection')
  if (kind === header) return used(isAlone ? 'nothing else is set' : headerReasons[kind])
  if (kind === 'exec') {
    const winner = header ?? certificate
    return winner ? ignored(`${winner} wins: the plugin is not run`) : used('nothing else is set')
  }
  if (header) return ignored(`${header} wins`)
  if (kind === 'auth-provider') return used('no token and no username is set')
  return ignored('a password without a username proves nothing')
}

function credentialsIn(user: ResolvedContext['user']): Present[] {
  const found: Present[] = []
  const certificate = user.clientCertificateData === undefined ? user.clientCertificate : 'inline'
  if (certificate !== undefined) found.push({ kind: 'client-certificate', from: certificate })
  if (user.tokenFile !== undefined) found.push({ kind: 'token-file', from: user.tokenFile })
  if (user.token) found.push({ kind: 'token', from: 'inline' })
  if (user.username !== undefined || user.password) {
    found.push({ kind: 'basic', from: user.username ?? 'password only' })
  }
  if (user.exec) found.push({ kind: 'exec', from: user.exec.command })
  if (user.authProvider) found.push({ kind: 'auth-provider', from: user.authProvider.name })
  return found
}

/**
 * What a token says of itself, without a look at its signature: to show it or to know its end, never to trust it.
 * Undefined if it is no JWT.
 */
export function unverifiedClaims(token: string): Readonly<Record<string, unknown>> | undefined {
  const parts = token.split('.')
  const [, payload = ''] = parts
  if (parts.length !== 3 || !/^[\w-]+$/.test(payload)) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
    return isRecord(claims) ? claims : undefined
  } catch {
    return undefined
  }
}

/** When a JWT expires by its own word, in milliseconds since 1970. */
export function claimedExpiry(token: string): number | undefined {
  const exp = unverifiedClaims(token)?.['exp']
  return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1_000 : undefined
}

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
