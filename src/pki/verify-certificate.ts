import type { X509Certificate } from 'node:crypto'
import {
  type CertificateExtension,
  type CertificateFields,
  CertificateRefused,
  readCertificateFields,
} from './certificate.ts'
import { DerInvalid, derChildren, derTag, expectTag, readDer } from './der.ts'

const maxLength = 6
const maxSignatures = 30

/**
 * Every way from a certificate up to a trusted one, each step a signature that holds. The client
 * chooses what is searched, so the search ends after a fixed amount of work.
 */
export function* certificatePaths(
  leaf: X509Certificate,
  intermediates: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
): Generator<readonly X509Certificate[]> {
  let signaturesLeft = maxSignatures
  const signed = (ca: X509Certificate, certificate: X509Certificate): boolean => {
    if (!ca.ca || !certificate.checkIssued(ca) || signaturesLeft <= 0) return false
    signaturesLeft--
    return certificate.verify(ca.publicKey)
  }
  function* extend(path: readonly X509Certificate[]): Generator<readonly X509Certificate[]> {
    const last = path.at(-1)
    if (!last || path.length >= maxLength) return
    for (const ca of trusted) if (signed(ca, last)) yield [...path, ca]
    for (const ca of intermediates) {
      if (!path.includes(ca) && signed(ca, last)) yield* extend([...path, ca])
    }
  }
  yield* extend([leaf])
}

const serverAuth = '1.3.6.1.5.5.7.3.1'
const clientAuth = '1.3.6.1.5.5.7.3.2'
const anyUsage = '2.5.29.37.0'
const basicConstraints = '2.5.29.19'
const nameConstraints = '2.5.29.30'
const understood = new Set([
  basicConstraints,
  '2.5.29.15', // key usage, checked by OpenSSL in `checkIssued`
  '2.5.29.17', // subject alternative name
  '2.5.29.32', // certificate policies: none is required here
  '2.5.29.37', // extended key usage
])
const weakSignatures = new Set([
  '1.2.840.113549.1.1.2', // MD2 with RSA
  '1.2.840.113549.1.1.4', // MD5 with RSA
  '1.2.840.113549.1.1.5', // SHA-1 with RSA
  '1.2.840.10040.4.3', // SHA-1 with DSA
  '1.2.840.10045.4.1', // SHA-1 with ECDSA
])

/** A certificate in its place on a path. */
export interface PathStep {
  readonly certificate: X509Certificate
  readonly fields: CertificateFields
  /** 0 is the holder's own. */
  readonly depth: number
  /** Whether it is one that we trust anyway. */
  readonly trusted: boolean
}

/** A rule that each certificate of a path must keep; throws CertificateRefused. */
export type PathRule = (step: PathStep, now: number) => void

/** The rules of RFC 5280 section 6 for client authentication. */
export const clientPathRules: readonly PathRule[] = [isInTime, isForClients, ...rulesOfEveryPath()]

/** The rules of RFC 5280 section 6 for servers; theirs alone must say that it is for servers. */
export const serverPathRules: readonly PathRule[] = [isInTime, isForServers, ...rulesOfEveryPath()]

function rulesOfEveryPath(): readonly PathRule[] {
  return [isStronglySigned, hasOnlyKnownExtensions, standsAboveNoMoreThanItMay]
}

function isInTime({ certificate }: PathStep, now: number): void {
  if (now > Date.parse(certificate.validTo)) {
    throw new CertificateRefused('EXPIRED', `a certificate expired on ${certificate.validTo}`)
  }
  if (now < Date.parse(certificate.validFrom)) {
    const from = certificate.validFrom
    throw new CertificateRefused('NOT_YET_VALID', `a certificate is valid only from ${from} on`)
  }
}

// As in Kubernetes, a certificate that states no usage is good for all of them.
function isForClients({ certificate }: PathStep): void {
  const usages: readonly string[] | undefined = certificate.keyUsage
  if (!usages || usages.includes(clientAuth) || usages.includes(anyUsage)) return
  throw new CertificateRefused('WRONG_USAGE', 'a certificate is not for client authentication')
}

// Stricter than TLS: what states no usage is not believed to be a server's.
function isForServers({ certificate, depth }: PathStep): void {
  const usages: readonly string[] | undefined = certificate.keyUsage
  const isFit =
    depth === 0
      ? usages?.includes(serverAuth)
      : !usages || usages.includes(serverAuth) || usages.includes(anyUsage)
  if (isFit && !(depth === 0 && certificate.ca)) return
  throw new CertificateRefused('WRONG_USAGE', 'a certificate is not for server authentication')
}

function isStronglySigned({ fields, trusted }: PathStep): void {
  // Nobody relies on the signature of a certificate that is trusted by itself.
  if (trusted || !weakSignatures.has(fields.signatureAlgorithm)) return
  throw new CertificateRefused('WEAK_SIGNATURE', 'a certificate is signed with SHA-1 or older')
}

// Constraints on names would have to be checked against each name below; so their CA is not believed.
function hasOnlyKnownExtensions({ fields }: PathStep): void {
  const isKnown = ({ oid, critical }: CertificateExtension): boolean =>
    oid !== nameConstraints && (!critical || understood.has(oid))
  const strange = fields.extensions.find((extension) => !isKnown(extension))
  if (!strange) return
  const message = `a certificate has the extension ${strange.oid}, which is not supported`
  throw new CertificateRefused('UNSUPPORTED_EXTENSION', message)
}

function standsAboveNoMoreThanItMay({ fields, depth }: PathStep): void {
  const extension = fields.extensions.find(({ oid }) => oid === basicConstraints)
  // The CAs below are counted, the holder's own certificate is not.
  if (!extension || depth - 1 <= pathLengthOf(extension.value)) return
  throw new CertificateRefused('PATH_TOO_LONG', 'a CA stands above more CAs than it may')
}

function pathLengthOf(extension: Buffer): number {
  const parts = derChildren(expectTag(readDer(extension), derTag.sequence))
  const limit = parts.find(({ tag }) => tag === derTag.integer)?.content
  if (!limit) return Number.POSITIVE_INFINITY
  return limit.length === 1 ? limit.readInt8(0) : Number.POSITIVE_INFINITY
}

/**
 * Finds a way from the first certificate of a chain up to one of the bundle on which every certificate keeps
 * the rules, and returns the first step; throws CertificateRefused.
 */
export function requireCertificatePath(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  { rules, now }: { readonly rules: readonly PathRule[]; readonly now: number },
): PathStep {
  const [leaf, ...intermediates] = chain
  if (!leaf) throw new CertificateRefused('MALFORMED', 'there is no certificate')
  let refusal: CertificateRefused | undefined
  // A CA that was renewed with its key stands in a bundle twice, and the old one may have expired.
  for (const path of certificatePaths(leaf, intermediates, bundle)) {
    try {
      const steps = stepsOf(path)
      for (const step of steps) for (const rule of rules) rule(step, now)
      if (steps[0]) return steps[0]
    } catch (error) {
      refusal ??= toRefusal(error)
    }
  }
  const unknown = 'the certificate is not signed by a CA that is trusted for this'
  throw refusal ?? new CertificateRefused('UNKNOWN_AUTHORITY', unknown)
}

const stepsOf = (path: readonly X509Certificate[]): PathStep[] =>
  path.map((certificate, depth) => ({
    certificate,
    depth,
    fields: readCertificateFields(certificate.raw),
    trusted: depth === path.length - 1,
  }))

function toRefusal(error: unknown): CertificateRefused {
  if (error instanceof CertificateRefused) return error
  if (!(error instanceof DerInvalid)) throw error
  return new CertificateRefused('MALFORMED', 'a certificate cannot be read', { cause: error })
}

/** Whom a verified client certificate names. */
export interface ClientCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  /** Upper-case hexadecimal. */
  readonly serial: string
  /** Upper-case hexadecimal pairs with colons between them. */
  readonly fingerprint256: string
  /** Epoch milliseconds. */
  readonly notAfter: number
}

/**
 * Verifies that a CA of the bundle vouches for a client certificate, and says whom it names.
 * `chain` is what the client sent: its own certificate, then any intermediates in any order. What TLS
 * itself found does not matter, since it does not tell under which CA.
 */
export function verifyClientCertificate(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  now: number,
): ClientCertificate {
  const { certificate, fields } = requireCertificatePath(chain, bundle, {
    rules: clientPathRules,
    now,
  })
  const { commonName, organizations } = fields.subject
  if (!commonName)
    throw new CertificateRefused('NO_COMMON_NAME', 'the certificate has no common name')
  return {
    commonName,
    organizations,
    serial: certificate.serialNumber,
    fingerprint256: certificate.fingerprint256,
    notAfter: Date.parse(certificate.validTo),
  }
}

/**
 * Verifies that a CA of the bundle vouches for a server's certificate and that it names the server; throws
 * CertificateRefused. A certificate that states no usage, that is a CA, or that names the server only by a
 * wildcard or in its subject is refused: TLS would take it, but here others hold certificates of the same CA.
 */
export function verifyServerCertificate(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  expected: { readonly name: string; readonly now: number },
): void {
  const { certificate } = requireCertificatePath(chain, bundle, {
    rules: serverPathRules,
    now: expected.now,
  })
  const rules = { subject: 'never', wildcards: false } as const
  if (certificate.checkHost(expected.name, rules) !== undefined) return
  throw new CertificateRefused('WRONG_NAME', `the certificate is not one of ${expected.name}`)
}
