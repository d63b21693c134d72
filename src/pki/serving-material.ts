import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { CommandFailed, Secret, systemErrorCode } from '../core/index.ts'
import { parseCertificates } from './pem.ts'

/** A certificate that a server shows, with its key. */
export interface ServingMaterial {
  /** The certificate, followed by any intermediates. */
  readonly certPem: string
  readonly keyPem: Secret
  readonly certificate: X509Certificate
}

interface Files {
  readonly certFile: string
  readonly keyFile: string
}

/** Reads a certificate and its key, which must belong together and be valid now. */
export async function readServingMaterial(files: Files, now: number): Promise<ServingMaterial> {
  const [certPem, keyPem] = await Promise.all([
    readText(files.certFile, files),
    readText(files.keyFile, files),
  ])
  const certificate = firstCertificate(certPem, files)
  if (!certificate.checkPrivateKey(privateKey(keyPem, files))) {
    throw unfit(`${files.keyFile} is not the key of the certificate in ${files.certFile}`, files)
  }
  if (Date.parse(certificate.validTo) <= now) {
    throw unfit(`the certificate in ${files.certFile} expired on ${certificate.validTo}`, files)
  }
  return { certPem, keyPem: new Secret(keyPem), certificate }
}

/** Whether two certificates with their keys are the same. */
export const isSameMaterial = (a: ServingMaterial, b: ServingMaterial): boolean =>
  a.certPem === b.certPem && a.keyPem.reveal() === b.keyPem.reveal()

async function readText(file: string, files: Files): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw unfit(`cannot read ${file}: ${systemErrorCode(cause) ?? 'unknown error'}`, files)
  }
}

function firstCertificate(pem: string, files: Files): X509Certificate {
  try {
    const [first] = parseCertificates(pem)
    if (first) return first
    throw new TypeError('a PEM text without certificates was not refused')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unknown error'
    throw unfit(`${files.certFile} is not a certificate file: ${why}`, files)
  }
}

function privateKey(pem: string, files: Files): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    // Without its cause: a parser's message may quote what it read.
    throw unfit(`${files.keyFile} is not an unencrypted private key in PEM form`, files)
  }
}

const unfit = (why: string, { certFile, keyFile }: Files): CommandFailed =>
  new CommandFailed('SERVING_CERTIFICATE_UNFIT', why, {
    hint: `put a valid certificate into ${certFile} and its key into ${keyFile}`,
  })
