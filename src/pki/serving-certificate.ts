import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { type Clock, CommandFailed, type Logger, readGivenFile, Secret } from '../core/index.ts'
import { parseCertificates } from './pem.ts'
import { checkPeriodically } from './periodic-check.ts'
import { watchFiles } from './watch-files.ts'

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
  return readGivenFile(file, (code) => unfit(`cannot read ${file}: ${code}`, files))
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

/** Where a serving certificate comes from, and what keeps it fresh. */
export interface ServingSource {
  readonly certFile: string
  readonly keyFile: string
  /** Renews the files if that is due; absent when somebody else does. */
  readonly renew?: () => Promise<unknown>
  readonly clock: Clock
  readonly log: Logger
}

const soonMs = 3 * 24 * 60 * 60_000

/** A serving certificate that follows its files: good ones are taken over, bad ones are reported. */
export class ServingCertificate {
  readonly #source: ServingSource
  readonly #listeners: ((material: ServingMaterial) => void)[] = []
  readonly #closed = new AbortController()
  #current: ServingMaterial

  constructor(source: ServingSource, material: ServingMaterial) {
    this.#source = source
    this.#current = material
  }

  /** The certificate to show now. */
  get current(): ServingMaterial {
    return this.#current
  }

  /** Calls back with each certificate that replaces the current one. */
  onNew(listener: (material: ServingMaterial) => void): void {
    this.#listeners.push(listener)
  }

  /** Follows the files and the clock until it is closed. */
  async watch(): Promise<void> {
    const { certFile, keyFile, log } = this.#source
    const { signal } = this.#closed
    await watchFiles([certFile, keyFile], () => this.reload(), { log, signal })
    checkPeriodically(() => this.check(), { name: 'serving certificate', log, signal })
  }

  /** Renews the certificate if it is due, and takes over what the files then hold. */
  async check(): Promise<void> {
    const { renew, certFile, clock, log } = this.#source
    await renew?.().catch((err: unknown) => {
      log.error({ err, file: certFile }, 'the serving certificate could not be renewed')
    })
    await this.reload()
    const { validTo } = this.#current.certificate
    if (Date.parse(validTo) - clock.now() < soonMs) {
      log.warn({ file: certFile, validTo }, 'the serving certificate ends soon')
    }
  }

  /** Takes over what the files hold, unless it is unfit: then the current certificate stays. */
  async reload(): Promise<void> {
    const { certFile, log } = this.#source
    let material: ServingMaterial
    try {
      material = await readServingMaterial(this.#source, this.#source.clock.now())
    } catch (err) {
      log.warn({ err, file: certFile }, 'the new serving certificate is unfit, the old one stays')
      return
    }
    if (isSameMaterial(material, this.#current)) return
    this.#current = material
    const { serialNumber, validTo } = material.certificate
    log.info({ file: certFile, serialNumber, validTo }, 'serving certificate replaced')
    for (const listener of this.#listeners) listener(material)
  }

  /** Stops following. */
  close(): void {
    this.#closed.abort()
  }
}

/** Reads a serving certificate, which must be fit, and follows its files from then on. */
export async function openServingCertificate(source: ServingSource): Promise<ServingCertificate> {
  const serving = new ServingCertificate(
    source,
    await readServingMaterial(source, source.clock.now()),
  )
  await serving.watch()
  // Once more, for a change between the first reading and the watch.
  await serving.reload()
  return serving
}
