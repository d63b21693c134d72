import type { X509Certificate } from 'node:crypto'
import type { CertificateExtension, CertificateFields } from './certificate-fields.ts'
import { CertificateRefused } from './certificate-refused.ts'
import { derChildren, derTag, expectTag, readDer } from './der.ts'

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
