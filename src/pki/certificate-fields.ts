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
import { readName, type SubjectName } from './distinguished-name.ts'

/** What Node's certificates do not tell about themselves. */
export interface CertificateFields {
  readonly subject: SubjectName
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
