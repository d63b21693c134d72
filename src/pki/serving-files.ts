import type { KeyObject, X509Certificate } from 'node:crypto'
import { isIP, isIPv6 } from 'node:net'
import { CommandFailed, type Logger } from '../core/index.ts'
import { type CertificateAuthority, issueCertificate } from './issue-certificate.ts'
import { generateEcKey, privateKeyPem, publicKeyOf } from './keys.ts'
import { parseCertificates } from './pem.ts'
import {
  type CertificateFile,
  readCertificateFile,
  readKeyFile,
  writeKeyFile,
  writePublicFile,
} from './pki-files.ts'

/** A serving certificate of our own PKI: where it lives and what it must say. */
export interface ServingFiles {
  readonly certFile: string
  readonly keyFile: string
  readonly ca: CertificateAuthority
  readonly caFile: string
  readonly commonName: string
  /** DNS names and IP addresses that clients use. */
  readonly sans: readonly string[]
  readonly lifetimeMs: number
}

/** Past two thirds of its life a certificate is renewed, as kubelets do it. */
export function isDueForRenewal(certificate: X509Certificate, now: number): boolean {
  const from = Date.parse(certificate.validFrom)
  const to = Date.parse(certificate.validTo)
  return now >= from + ((to - from) * 2) / 3
}

// The names out of `sans` that the certificate does not cover.
function missingSans(certificate: X509Certificate, sans: readonly string[]): string[] {
  return sans.filter((name) =>
    isIP(name)
      ? certificate.checkIP(name) === undefined
      : certificate.checkHost(name, { subject: 'never' }) === undefined,
  )
}

/** Makes sure that a serving certificate is there and good for a while; true when a new one was issued. */
export async function ensureServing(
  wanted: ServingFiles,
  now: number,
  log: Logger,
): Promise<boolean> {
  const files = { ...wanted, sans: normalSans(wanted.sans) }
  const [found, key] = await Promise.all([
    readCertificateFile(files.certFile),
    readKeyFile(files.keyFile),
  ])
  if (found) checkServing(files, found, key)
  const reason = found ? reasonToReissue(files, found, now) : 'there was none'
  if (reason === undefined) return false
  if (found && !files.ca.key && Date.parse(found.first.validTo) > now) {
    log.warn(
      { file: files.certFile, reason },
      'the serving certificate should be renewed, but the key of its CA is not here',
    )
    return false
  }
  await reissue(files, key, now)
  log.info({ file: files.certFile, reason }, 'serving certificate issued')
  return true
}

const dnsName = /^(\*\.)?[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*$/i

function normalSans(sans: readonly string[]): string[] {
  // A zone such as `%eth0` means something on one machine only and has no place in a certificate.
  const names = sans.map((name) => (isIPv6(name) ? (name.split('%')[0] ?? name) : name))
  const wrong = names.find((name) => !isIP(name) && !dnsName.test(name))
  if (wrong === undefined) return [...new Set(names)]
  throw new CommandFailed(
    'SAN_INVALID',
    `${JSON.stringify(wrong)} cannot stand in a certificate: it is neither a DNS name nor an IP address`,
    { hint: 'write international names in their xn-- form' },
  )
}

// The key stays: replacing one file is one step, replacing two could be cut off in the middle.
async function reissue(
  files: ServingFiles,
  existing: KeyObject | undefined,
  now: number,
): Promise<void> {
  const key = existing ?? (await generateEcKey())
  const made = await issueCertificate({
    ca: files.ca,
    subject: { commonName: files.commonName },
    publicKey: publicKeyOf(key),
    usages: ['server auth'],
    sans: files.sans,
    now,
    lifetimeMs: files.lifetimeMs,
  })
  if (!existing) await writeKeyFile(files.keyFile, privateKeyPem(key).reveal())
  await writePublicFile(files.certFile, made.certPem + (files.ca.chainPem ?? ''))
}

function checkServing(files: ServingFiles, found: CertificateFile, key: KeyObject | undefined) {
  const hint = `restore the pair from one backup, or remove both files to have them issued anew`
  if (!key) {
    throw new CommandFailed(
      'PKI_INCOMPLETE',
      `${files.certFile} is there, but its key ${files.keyFile} is missing`,
      { hint },
    )
  }
  if (!found.first.checkPrivateKey(key)) {
    throw new CommandFailed(
      'PKI_MISMATCH',
      `${files.keyFile} is not the key of the certificate in ${files.certFile}`,
      { hint },
    )
  }
  const trusted = parseCertificates(files.ca.bundlePem)
  if (!trusted.some((issuer) => isIssuedBy(found.first, issuer))) {
    throw new CommandFailed(
      'PKI_MISMATCH',
      `${files.certFile} was not signed by the CA in ${files.caFile}`,
      { hint },
    )
  }
}

const isIssuedBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)

function reasonToReissue(
  files: ServingFiles,
  { first: certificate, all }: CertificateFile,
  now: number,
): string | undefined {
  const { ca } = files
  if (!isIssuedBy(certificate, ca.certificate)) return 'its CA has been replaced'
  if (all.slice(1).join('') !== (ca.chainPem ?? '')) return 'what vouches for its CA has changed'
  const missing = missingSans(certificate, files.sans)
  if (missing.length > 0) return `it did not name ${missing.join(', ')}`
  if (Date.parse(certificate.validFrom) > now) return 'it was not valid yet'
  return isDueForRenewal(certificate, now) ? 'it was near its end' : undefined
}
