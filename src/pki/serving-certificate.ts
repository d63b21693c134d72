import type { Clock, Logger } from '../core/index.ts'
import { checkPeriodically } from './periodic-check.ts'
import { isSameMaterial, readServingMaterial, type ServingMaterial } from './serving-material.ts'
import { watchFiles } from './watch-files.ts'

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
