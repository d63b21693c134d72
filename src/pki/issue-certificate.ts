import { type KeyObject, randomBytes, webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type * as X509Library from '@peculiar/x509'
import type { Extension, JsonGeneralName } from '@peculiar/x509'
import { CommandFailed } from '../core/index.ts'
import { generateEcKey, publicKeyOf } from './keys.ts'

/**
 * Loads the library that writes certificates, on first use only: it costs some 200 ms, and a server
 * that finds its certificates in place never needs it.
 */
export async function loadX509(): Promise<typeof X509Library> {
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

interface SigningAlgorithm {
  readonly name: string
  readonly hash: string
  readonly namedCurve?: string
}

const ecAlgorithms: Readonly<Record<string, SigningAlgorithm>> = {
  prime256v1: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  secp384r1: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  secp521r1: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
}

function signingAlgorithmOf(key: KeyObject): SigningAlgorithm {
  if (key.asymmetricKeyType === 'rsa') return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const algorithm = ecAlgorithms[key.asymmetricKeyDetails?.namedCurve ?? '']
  if (algorithm) return algorithm
  throw new CommandFailed(
    'CA_KEY_UNSUPPORTED',
    `a CA key of type ${key.asymmetricKeyType ?? 'unknown'} cannot sign certificates here`,
    { hint: 'use an RSA key or an ECDSA key on P-256, P-384 or P-521' },
  )
}

/** A private key in the form that the library signs with. */
export async function toSigningKey(
  key: KeyObject,
): Promise<{ key: webcrypto.CryptoKey; algorithm: SigningAlgorithm }> {
  const algorithm = signingAlgorithmOf(key)
  const der = key.export({ type: 'pkcs8', format: 'der' })
  return {
    key: await webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']),
    algorithm,
  }
}

/** A certificate authority: what it signs with, and what others trust. */
export interface CertificateAuthority {
  /** How messages call it, for example `cluster CA`. */
  readonly name: string
  /** The certificate whose key signs. */
  readonly certificate: X509Certificate
  /** Every certificate that is trusted, the signing one first. */
  readonly bundlePem: string
  /** Sent along with what this CA has signed, for those who only trust the CA before it. */
  readonly chainPem?: string
  /** Absent when the key is kept elsewhere: then nothing can be issued here. */
  readonly key: KeyObject | undefined
}

/** Whom a certificate names. */
export interface CertificateSubject {
  readonly commonName: string
  readonly organizations?: readonly string[]
}

/** What a certificate may be used for, in Kubernetes' words. */
export type CertificateUsage = 'server auth' | 'client auth'

/** A certificate to be signed by `ca`. */
export interface CertificateOrder {
  readonly ca: CertificateAuthority
  readonly subject: CertificateSubject | { readonly der: Buffer }
  readonly publicKey: KeyObject
  readonly usages: readonly CertificateUsage[]
  /** DNS names and IP addresses. */
  readonly sans?: readonly string[]
  readonly emailAddresses?: readonly string[]
  readonly uris?: readonly string[]
  /** Epoch milliseconds. */
  readonly now: number
  readonly lifetimeMs: number
}

/** A certificate and its PEM text. */
export interface IssuedCertificate {
  readonly certificate: X509Certificate
  readonly certPem: string
}

/** How far certificates reach back, so that clients whose clocks are late accept them. */
export const backdateMs = 5 * 60_000

const extendedKeyUsageOf: Readonly<Record<CertificateUsage, string>> = {
  'server auth': '1.3.6.1.5.5.7.3.1',
  'client auth': '1.3.6.1.5.5.7.3.2',
}

/** Signs a certificate; it never outlives its CA. */
export async function issueCertificate(order: CertificateOrder): Promise<IssuedCertificate> {
  const { ca } = order
  if (!ca.key) {
    throw new CommandFailed('CA_KEY_MISSING', `the key of the ${ca.name} is not here`, {
      hint: 'put the key beside its certificate, or have the certificate issued where the key is',
    })
  }
  const x509 = await loadX509()
  const signing = await toSigningKey(ca.key)
  const issuer = new x509.X509Certificate(ca.certificate.raw)
  const notAfter = Math.min(order.now + order.lifetimeMs, Date.parse(ca.certificate.validTo))
  const usage =
    x509.KeyUsageFlags.digitalSignature |
    (order.publicKey.asymmetricKeyType === 'rsa' ? x509.KeyUsageFlags.keyEncipherment : 0)
  const extensions: Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(usage, true),
    new x509.ExtendedKeyUsageExtension(order.usages.map((name) => extendedKeyUsageOf[name])),
    await x509.AuthorityKeyIdentifierExtension.create(issuer),
  ]
  const altNames = altNamesOf(order)
  if (altNames.length > 0) extensions.push(new x509.SubjectAlternativeNameExtension(altNames))
  const subject = 'der' in order.subject ? order.subject.der : nameOf(order.subject)
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: randomSerial(),
    subject: new x509.Name(subject),
    issuer: issuer.subjectName,
    notBefore: new Date(order.now - backdateMs),
    notAfter: new Date(notAfter),
    publicKey: publicKeyOf(order.publicKey).export({ type: 'spki', format: 'der' }),
    signingKey: signing.key,
    signingAlgorithm: signing.algorithm,
    extensions,
  })
  return toIssued(made.rawData)
}

/** Makes a key and signs a certificate for it. */
export async function issueKeyAndCertificate(
  order: Omit<CertificateOrder, 'publicKey'>,
): Promise<IssuedCertificate & { readonly key: KeyObject }> {
  const key = await generateEcKey()
  return { ...(await issueCertificate({ ...order, publicKey: publicKeyOf(key) })), key }
}

/** Signs a CA's own certificate with its key, or with that of another CA that vouches for it. */
export async function issueAuthorityCertificate(order: {
  readonly commonName: string
  readonly key: KeyObject
  readonly now: number
  readonly lifetimeMs: number
  readonly voucher?: { readonly certificate: X509Certificate; readonly key: KeyObject }
}): Promise<IssuedCertificate> {
  const { voucher } = order
  const x509 = await loadX509()
  const signing = await toSigningKey(voucher?.key ?? order.key)
  const publicKey = publicKeyOf(order.key).export({ type: 'spki', format: 'der' })
  const name = new x509.Name(nameOf({ commonName: order.commonName }))
  const issuer = voucher && new x509.X509Certificate(voucher.certificate.raw)
  const notAfter = Math.min(
    order.now + order.lifetimeMs,
    voucher ? Date.parse(voucher.certificate.validTo) : Number.POSITIVE_INFINITY,
  )
  const { digitalSignature, keyCertSign, cRLSign } = x509.KeyUsageFlags
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: randomSerial(),
    subject: name,
    issuer: issuer?.subjectName ?? name,
    notBefore: new Date(order.now - backdateMs),
    notAfter: new Date(notAfter),
    publicKey,
    signingKey: signing.key,
    signingAlgorithm: signing.algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(digitalSignature | keyCertSign | cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(await x509.PublicKey.create(publicKey)),
      ...(issuer ? [await x509.AuthorityKeyIdentifierExtension.create(issuer)] : []),
    ],
  })
  return toIssued(made.rawData)
}

function toIssued(der: ArrayBuffer): IssuedCertificate {
  const certificate = new X509Certificate(Buffer.from(der))
  return { certificate, certPem: certificate.toString() }
}

function altNamesOf(order: CertificateOrder): JsonGeneralName[] {
  return [
    ...(order.sans ?? []).map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value }) as const),
    ...(order.emailAddresses ?? []).map((value) => ({ type: 'email', value }) as const),
    ...(order.uris ?? []).map((value) => ({ type: 'url', value }) as const),
  ]
}

// As objects, never as text: in the text form of a name a comma or plus sign starts another attribute.
function nameOf(subject: CertificateSubject): Record<string, { utf8String: string }[]>[] {
  const organizations = (subject.organizations ?? []).map((o) => ({ O: [{ utf8String: o }] }))
  return [...organizations, { CN: [{ utf8String: subject.commonName }] }]
}

// 126 random bits; the first byte is neither zero nor negative, so the number has one spelling only.
function randomSerial(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40
  return bytes.toString('hex')
}
