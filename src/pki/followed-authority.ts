import type { Clock, Logger } from '../core/index.ts'
import { type AuthorityFiles, openAuthority } from './authority-files.ts'
import type { CertificateAuthority } from './issue-certificate.ts'
import { watchFiles } from './watch-files.ts'

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
