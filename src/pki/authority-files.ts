import type { X509Certificate } from 'node:crypto'
import { access } from 'node:fs/promises'
import { CommandFailed } from '../core/index.ts'
import { type CertificateAuthority, issueAuthorityCertificate } from './issue-certificate.ts'
import { generateEcKey, privateKeyPem } from './keys.ts'
import {
  type CertificateFile,
  readCertificateFile,
  readKeyFile,
  writeKeyFile,
  writePublicFile,
} from './pki-file.ts'

/** Where a CA lives and how it is made when it is not there. */
export interface AuthorityFiles {
  /** How messages call it. */
  readonly name: string
  readonly certFile: string
  readonly keyFile: string
  readonly commonName: string
  /** Certificates that this CA has signed: while one exists, the CA is not made anew. */
  readonly signedFiles: readonly string[]
  readonly lifetimeMs: number
}

/** Finds a CA again and checks it, or makes it. */
export async function openAuthority(
  files: AuthorityFiles,
  now: number,
): Promise<CertificateAuthority> {
  const [found, key] = await Promise.all([
    readCertificateFile(files.certFile),
    readKeyFile(files.keyFile),
  ])
  if (!found) return createAuthority(files, now)
  checkAuthorityCertificate(found, now)
  if (key && !found.first.checkPrivateKey(key)) {
    throw new CommandFailed(
      'PKI_MISMATCH',
      `${files.keyFile} is not the key of the first certificate in ${files.certFile}`,
      { hint: 'restore the pair from one backup' },
    )
  }
  return { name: files.name, certificate: found.first, bundlePem: found.pem, key }
}

async function createAuthority(files: AuthorityFiles, now: number): Promise<CertificateAuthority> {
  for (const path of files.signedFiles) {
    if (await exists(path)) {
      throw new CommandFailed(
        'PKI_INCOMPLETE',
        `${files.certFile} is missing, but ${path}, which it has signed, is there`,
        {
          hint: `restore ${files.certFile} and ${files.keyFile} from a backup: with a new CA every kubeconfig in use would stop working`,
        },
      )
    }
  }
  // The key is written first. A start that was cut off between the two files leaves a key that has
  // signed nothing yet, and the next start completes it.
  const left = await readKeyFile(files.keyFile)
  const key = left ?? (await generateEcKey())
  if (!left) await writeKeyFile(files.keyFile, privateKeyPem(key).reveal())
  const { commonName, lifetimeMs } = files
  const made = await issueAuthorityCertificate({ commonName, key, now, lifetimeMs })
  await writePublicFile(files.certFile, made.certPem)
  return { name: files.name, certificate: made.certificate, bundlePem: made.certPem, key }
}

function checkAuthorityCertificate(file: CertificateFile, now: number): void {
  const { first, path } = file
  const wrong = file.all.find((certificate) => !certificate.ca)
  if (wrong) {
    throw new CommandFailed('PKI_INVALID', `${path}: "${oneLine(wrong)}" is not a CA certificate`, {
      hint: 'only certificates with CA:true in their basic constraints belong there',
    })
  }
  if (Date.parse(first.validTo) <= now) {
    throw new CommandFailed('PKI_EXPIRED', `the CA in ${path} expired on ${first.validTo}`, {
      hint: 'check the clock of this machine; if it is right, replace the CA',
    })
  }
  if (Date.parse(first.validFrom) > now) {
    throw new CommandFailed(
      'PKI_NOT_YET_VALID',
      `the CA in ${path} is valid from ${first.validFrom} on`,
      {
        hint: 'the clock of this machine seems to be late',
      },
    )
  }
}

const oneLine = (certificate: X509Certificate): string => certificate.subject.replaceAll('\n', ', ')

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
