import type { X509Certificate } from 'node:crypto'
import { access } from 'node:fs/promises'
import { type Clock, CommandFailed, type Logger } from '../core/index.ts'
import { type CertificateAuthority, issueAuthorityCertificate } from './issue-certificate.ts'
import { generateEcKey, privateKeyPem } from './keys.ts'
import {
  type CertificateFile,
  readCertificateFile,
  readKeyFile,
  writeKeyFile,
  writePublicFile,
} from './pki-files.ts'
import { watchFiles } from './watch-files.ts'

/** Where a CA lives and how it is made when it is not there. */
export interface AuthorityFiles {
  /** How messages call it. */
  readonly name: string
  readonly certFile: string
  readonly keyFile: string
  readonly commonName: string
  /** Where the CA before it vouches for it, while one replaces the other. */
  readonly crossFile?: string
  /** Certificates that this CA has signed: while one exists, the CA is not made anew. */
  readonly signedFiles: readonly string[]
  readonly lifetimeMs: number
  /** False for a CA that must be there. */
  readonly mayCreate?: boolean
}

/** Finds a CA again and checks it, or makes it. */
export async function openAuthority(
  files: AuthorityFiles,
  now: number,
): Promise<CertificateAuthority> {
  const [found, key, cross] = await Promise.all([
    readCertificateFile(files.certFile),
    readKeyFile(files.keyFile),
    files.crossFile === undefined ? undefined : readCertificateFile(files.crossFile),
  ])
  if (!found) return createAuthority(files, now)
  requireAuthorities(found)
  // By its key, not by its place: when a CA is replaced, the key is what changes in one step.
  const certificate = key ? found.all.find((each) => each.checkPrivateKey(key)) : found.first
  if (!certificate) {
    throw new CommandFailed(
      'PKI_MISMATCH',
      `${files.keyFile} is not the key of a certificate in ${files.certFile}`,
      { hint: 'restore the pair from one backup' },
    )
  }
  requireInTime(certificate, files.certFile, now)
  const chainPem = cross && chainOf(cross.first, certificate, found.all)
  return {
    name: files.name,
    certificate,
    bundlePem: bundleOf(found, certificate),
    key,
    ...(chainPem !== undefined && { chainPem }),
  }
}

function bundleOf({ all, first, pem }: CertificateFile, signing: X509Certificate): string {
  if (signing === first) return pem
  return [signing, ...all.filter((each) => each !== signing)].join('')
}

/** The other certificate of the CA, if one that is still trusted has signed it. */
function chainOf(
  cross: X509Certificate,
  signing: X509Certificate,
  trusted: readonly X509Certificate[],
): string | undefined {
  const isOfSigning = cross.publicKey.equals(signing.publicKey)
  const vouches = (ca: X509Certificate): boolean =>
    ca !== signing && cross.checkIssued(ca) && cross.verify(ca.publicKey)
  return isOfSigning && trusted.some(vouches) ? cross.toString() : undefined
}

async function createAuthority(files: AuthorityFiles, now: number): Promise<CertificateAuthority> {
  if (files.mayCreate === false)
    throw new CommandFailed('PKI_INCOMPLETE', `${files.certFile} is missing`, {
      hint: 'restore it from a backup',
    })
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

function requireAuthorities({ all, path }: CertificateFile): void {
  const wrong = all.find((certificate) => !certificate.ca)
  if (wrong) {
    throw new CommandFailed('PKI_INVALID', `${path}: "${oneLine(wrong)}" is not a CA certificate`, {
      hint: 'only certificates with CA:true in their basic constraints belong there',
    })
  }
}

function requireInTime(signing: X509Certificate, path: string, now: number): void {
  if (Date.parse(signing.validTo) <= now) {
    throw new CommandFailed('PKI_EXPIRED', `the CA in ${path} expired on ${signing.validTo}`, {
      hint: 'check the clock of this machine; if it is right, replace the CA',
    })
  }
  if (Date.parse(signing.validFrom) > now) {
    throw new CommandFailed(
      'PKI_NOT_YET_VALID',
      `the CA in ${path} is valid from ${signing.validFrom} on`,
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

/** A CA that follows its files: what it signs with and whom it trusts may change while it is in use. */
export class FollowedAuthority {
  readonly #files: AuthorityFiles
  readonly #parts: { readonly clock: Clock; readonly log: Logger }
  readonly #listeners: (() => void)[] = []
  #current: CertificateAuthority

  constructor(
    files: AuthorityFiles,
    current: CertificateAuthority,
    parts: { readonly clock: Clock; readonly log: Logger },
  ) {
    this.#files = files
    this.#current = current
    this.#parts = parts
  }

  get current(): CertificateAuthority {
    return this.#current
  }

  /** Calls back after each change. */
  onNew(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Follows the files until `signal` aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { certFile, keyFile, crossFile } = this.#files
    const paths = [certFile, keyFile, ...(crossFile === undefined ? [] : [crossFile])]
    await watchFiles(paths, () => this.reload(), { log: this.#parts.log, signal })
    // Once more, for a change between the first reading and the watch.
    await this.reload()
  }

  /** Takes over what the files hold, unless it is unfit: then the CA stays as it is. */
  async reload(): Promise<void> {
    const { clock, log } = this.#parts
    const { name, certFile } = this.#files
    try {
      const found = await openAuthority({ ...this.#files, mayCreate: false }, clock.now())
      if (isSame(found, this.#current)) return
      this.#current = found
    } catch (err) {
      log.error({ err, ca: name, file: certFile }, 'the CA cannot be used, it stays as it was')
      return
    }
    const { certificate } = this.#current
    log.info({ ca: name, subject: certificate.subject, file: certFile }, 'CA replaced')
    for (const listener of this.#listeners) listener()
  }
}

function isSame(a: CertificateAuthority, b: CertificateAuthority): boolean {
  const hasSameKey = a.key === b.key || (a.key && b.key && a.key.equals(b.key)) === true
  return (
    a.certificate.fingerprint256 === b.certificate.fingerprint256 &&
    a.bundlePem === b.bundlePem &&
    a.chainPem === b.chainPem &&
    hasSameKey
  )
}
