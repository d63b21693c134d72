import { createHash, type X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { SallyportError } from '../core/index.ts'
import {
  DerInvalid,
  type DerValue,
  derChildren,
  derContent,
  derOid,
  derTag,
  expectTag,
  readDer,
} from './der.ts'

/** The type of a common name. */
export const commonNameOid = '2.5.4.3'
const organizationOid = '2.5.4.10'

/** Whom a certificate or a request names, as Kubernetes reads it. */
export interface SubjectName {
  /** The last one if there are several; empty if there is none. */
  readonly commonName: string
  /** All of them, in order. */
  readonly organizations: readonly string[]
  /** Types of all further attributes, common names before the last too, for those who must refuse them. */
  readonly otherTypes: readonly string[]
}

/**
 * Reads a name from its bytes. The text that Node makes of a subject cannot be taken apart again: a
 * line break or `+` inside a value looks like the end of it.
 */
export function readName(name: DerValue): SubjectName {
  let commonName: string | undefined
  const organizations: string[] = []
  const otherTypes: string[] = []
  for (const set of derChildren(expectTag(name, derTag.sequence))) {
    for (const attribute of derChildren(expectTag(set, derTag.set))) {
      const [type, value] = derChildren(expectTag(attribute, derTag.sequence))
      const oid = derOid(type)
      if (oid === commonNameOid) {
        if (commonName !== undefined) otherTypes.push(oid)
        commonName = readText(value)
      } else if (oid === organizationOid) organizations.push(readText(value))
      else otherTypes.push(oid)
    }
  }
  return { commonName: commonName ?? '', organizations, otherTypes }
}

const asciiTags: readonly number[] = [
  derTag.printableString,
  derTag.ia5String,
  derTag.numericString,
]

function readText(value: DerValue | undefined): string {
  if (!value) throw new DerInvalid('a name has no value')
  const { tag, content } = value
  if (tag === derTag.utf8String) return decode('utf-8', content)
  if (tag === derTag.bmpString) {
    if (content.length % 2 !== 0) throw new DerInvalid('a BMPString has half a character')
    return decode('utf-16le', Buffer.from(content).swap16())
  }
  const isAscii = asciiTags.includes(tag)
  if (!isAscii && tag !== derTag.teletexString) {
    throw new DerInvalid('a name is in a form that is not supported')
  }
  if (isAscii && content.some((byte) => byte > 0x7f)) {
    throw new DerInvalid('an ASCII string has other characters')
  }
  return content.toString('latin1')
}

function decode(encoding: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new DerInvalid(`a name is not valid ${encoding}`)
  }
}

/** What Node's certificates do not tell about themselves. */
export interface CertificateFields {
  readonly subject: SubjectName
  /** DER of the whole name. */
  readonly subjectDer: Buffer
  /** DER of the SubjectPublicKeyInfo, as it stands there. */
  readonly publicKey: Buffer
  readonly signatureAlgorithm: string
  readonly extensions: readonly CertificateExtension[]
}

/** One extension of a certificate or a request. */
export interface CertificateExtension {
  readonly oid: string
  readonly critical: boolean
  readonly value: Buffer
}

const versionTag = 0xa0
const extensionsTag = 0xa3

/** Reads a certificate's DER (RFC 5280 section 4.1). */
export function readCertificateFields(der: Buffer): CertificateFields {
  const [body, algorithm] = derChildren(expectTag(readDer(der), derTag.sequence))
  const fields = derChildren(expectTag(body, derTag.sequence))
  if (fields[0]?.tag === versionTag) fields.shift()
  const [, , , , subject, publicKey, ...optional] = fields
  if (!subject || !publicKey) throw new DerInvalid('the certificate is cut off')
  const extensions = optional.find(({ tag }) => tag === extensionsTag)
  return {
    subject: readName(subject),
    subjectDer: subject.raw,
    publicKey: publicKey.raw,
    signatureAlgorithm: algorithmOf(algorithm),
    extensions: extensions ? readExtensions(derChildren(extensions)[0]) : [],
  }
}

/** The object identifier of an AlgorithmIdentifier. */
export function algorithmOf(value: DerValue | undefined): string {
  return derOid(derChildren(expectTag(value, derTag.sequence))[0])
}

/** Reads a list of extensions; one that is there twice is refused. */
export function readExtensions(list: DerValue | undefined): CertificateExtension[] {
  const extensions = derChildren(expectTag(list, derTag.sequence)).map((entry) => {
    const parts = derChildren(expectTag(entry, derTag.sequence))
    const critical = parts[1]?.tag === derTag.boolean && parts[1].content[0] !== 0
    return {
      oid: derOid(parts[0]),
      critical,
      value: derContent(parts.at(-1), derTag.octetString),
    }
  })
  if (new Set(extensions.map(({ oid }) => oid)).size !== extensions.length) {
    throw new DerInvalid('an extension is there twice')
  }
  return extensions
}

/** The pin of a certificate's public key as kubeadm writes it; a CA keeps its pin when it is renewed with its key. */
export function spkiPin(certificate: X509Certificate): string {
  const { publicKey } = readCertificateFields(certificate.raw)
  return `sha256:${createHash('sha256').update(publicKey).digest('hex')}`
}

const maxCertificates = 10

/** The certificates that the other side of a TLS connection showed, its own first; empty if it showed none. */
export function peerCertificates(socket: Socket): X509Certificate[] {
  const chain: X509Certificate[] = []
  let next = isTls(socket) ? socket.getPeerX509Certificate() : undefined
  while (next && chain.length < maxCertificates) {
    chain.push(next)
    next = next.issuerCertificate
  }
  return chain
}

// Neither by `instanceof` nor by `in`: the socket of an HTTP/2 session is a stand-in without either.
function isTls(socket: Socket): socket is TLSSocket {
  return typeof (socket as Partial<TLSSocket>).getPeerX509Certificate === 'function'
}

/** Why a certificate is not believed. */
export type CertificateRefusal =
  | 'UNKNOWN_AUTHORITY'
  | 'EXPIRED'
  | 'NOT_YET_VALID'
  | 'WRONG_USAGE'
  | 'WRONG_NAME'
  | 'WEAK_SIGNATURE'
  | 'PATH_TOO_LONG'
  | 'UNSUPPORTED_EXTENSION'
  | 'NO_COMMON_NAME'
  | 'MALFORMED'

/** A certificate that proves nothing. */
export class CertificateRefused extends SallyportError {
  readonly code = 'CERTIFICATE_REFUSED'
  /** `UNKNOWN_AUTHORITY` is the one that another bundle of CAs might see otherwise. */
  readonly why: CertificateRefusal

  constructor(why: CertificateRefusal, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.why = why
  }
}

/** The alternative names of a certificate or a request, by kind. */
export interface SubjectAltNames {
  readonly dnsNames: readonly string[]
  readonly ipAddresses: readonly string[]
  readonly emailAddresses: readonly string[]
  readonly uris: readonly string[]
  /** How many there are of kinds that nobody issues. */
  readonly others: number
}

/** No names at all. */
export const noAltNames: SubjectAltNames = {
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
  others: 0,
}

const kindOfTag = { 0x81: 'emailAddresses', 0x82: 'dnsNames', 0x86: 'uris' } as const
const ipTag = 0x87

/** Reads the content of a subjectAltName extension. */
export function readAltNames(extension: Buffer): SubjectAltNames {
  const names = {
    dnsNames: [] as string[],
    ipAddresses: [] as string[],
    emailAddresses: [] as string[],
    uris: [] as string[],
    others: 0,
  }
  for (const name of derChildren(expectTag(readDer(extension), derTag.sequence))) {
    if (name.tag === ipTag) names.ipAddresses.push(readIp(name.content))
    else if (isTextTag(name.tag)) names[kindOfTag[name.tag]].push(readAscii(name))
    else names.others++
  }
  return names
}

const isTextTag = (tag: number): tag is keyof typeof kindOfTag => tag in kindOfTag

function readAscii({ content }: DerValue): string {
  if (content.length > 0 && content.every((byte) => byte > 0x20 && byte < 0x7f)) {
    return content.toString('latin1')
  }
  throw new DerInvalid('an alternative name has characters that do not belong there')
}

function readIp(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) throw new DerInvalid('an IP address has neither 4 nor 16 bytes')
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
