import { createPublicKey, type KeyObject } from 'node:crypto'
import { SallyportError } from '../core/index.ts'
import {
  algorithmOf,
  type CertificateExtension,
  noAltNames,
  readAltNames,
  readExtensions,
  readName,
  type SubjectAltNames,
  type SubjectName,
} from './certificate.ts'
import { isSignedBy } from './csr-signature.ts'
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
import { weaknessOfKey } from './keys.ts'
import { PemInvalid, parsePem } from './pem.ts'

/** A certificate signing request that cannot be used; the message says why. */
export class CsrInvalid extends SallyportError {
  readonly code = 'CSR_INVALID'
}

/** What a certificate signing request asks for; its sender has proved to have the key. */
export interface CertificateRequest extends SubjectAltNames {
  readonly subject: SubjectName
  /** DER of the whole subject. */
  readonly subjectDer: Buffer
  readonly publicKey: KeyObject
  /** Object identifiers of the extended key usages that it names itself, if any. */
  readonly extendedKeyUsages: readonly string[]
}

const extensionRequest = '1.2.840.113549.1.9.14'
const subjectAltName = '2.5.29.17'
const extendedKeyUsage = '2.5.29.37'
const attributesTag = 0xa0

/** Reads a certificate signing request in PEM form and checks its signature and its key. */
export function parseCsr(pem: string): CertificateRequest {
  try {
    return readRequest(derOfRequest(pem))
  } catch (cause) {
    if (!(cause instanceof DerInvalid) && !(cause instanceof PemInvalid)) throw cause
    throw new CsrInvalid(`the certificate signing request cannot be read: ${cause.message}`, {
      cause,
    })
  }
}

function derOfRequest(pem: string): Buffer {
  const [block, ...more] = parsePem(pem)
  if (block?.label !== 'CERTIFICATE REQUEST' || more.length > 0) {
    throw new CsrInvalid('exactly one PEM block of type CERTIFICATE REQUEST is needed')
  }
  return block.der
}

// RFC 2986 section 4
function readRequest(der: Buffer): CertificateRequest {
  const [info, algorithm, signature] = derChildren(expectTag(readDer(der), derTag.sequence))
  const [, subject, spki, attributes] = derChildren(expectTag(info, derTag.sequence))
  if (!info || !subject || !spki) throw new DerInvalid('it is cut off')
  const publicKey = readPublicKey(spki)
  checkSignature(publicKey, algorithmOf(algorithm), info.raw, signature)
  const extensions = requestedExtensions(attributes)
  const valueOf = (wanted: string) => extensions.find(({ oid }) => oid === wanted)?.value
  const altNames = valueOf(subjectAltName)
  const usages = valueOf(extendedKeyUsage)
  return {
    ...(altNames ? readAltNames(altNames) : noAltNames),
    subject: readName(subject),
    subjectDer: subject.raw,
    publicKey,
    extendedKeyUsages: usages ? derChildren(readDer(usages)).map(derOid) : [],
  }
}

function readPublicKey(spki: DerValue): KeyObject {
  let key: KeyObject
  try {
    key = createPublicKey({ key: spki.raw, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new CsrInvalid('the public key cannot be read', { cause })
  }
  const weakness = weaknessOfKey(key)
  if (weakness) throw new CsrInvalid(weakness)
  return key
}

function checkSignature(
  key: KeyObject,
  algorithm: string,
  bytes: Buffer,
  signature: DerValue | undefined,
): void {
  const bits = derContent(signature, derTag.bitString)
  if (bits[0] !== 0) throw new DerInvalid('the signature is not made of whole bytes')
  const holds = isSignedBy(key, algorithm, bytes, bits.subarray(1))
  if (holds === undefined) {
    throw new CsrInvalid(`the signature algorithm ${algorithm} is not supported`)
  }
  if (!holds) throw new CsrInvalid('the signature is not by the key in the request')
}

function requestedExtensions(attributes: DerValue | undefined): CertificateExtension[] {
  if (attributes?.tag !== attributesTag) return []
  const lists = derChildren(attributes)
    .map((attribute) => derChildren(expectTag(attribute, derTag.sequence)))
    .filter(([type]) => derOid(type) === extensionRequest)
    .flatMap(([, values]) => derChildren(expectTag(values, derTag.set)))
  if (lists.length > 1) throw new DerInvalid('it has two lists of extensions')
  return lists[0] ? readExtensions(lists[0]) : []
}
