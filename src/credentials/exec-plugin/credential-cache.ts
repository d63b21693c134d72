import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  acquireFileLock,
  type Clock,
  isRecord,
  replaceFile,
  systemClock,
  systemErrorCode,
} from '../../core/index.ts'
import { openPrivateDirectory, readPrivateFile } from './private-files.ts'
import type { PluginCredential } from './response.ts'

/** How a cache behaves. */
export interface CredentialCacheOptions {
  readonly clock?: Clock
  /** A credential that ends so soon is not handed out any more. Default 10 s. */
  readonly skewMs?: number
  /** How long to wait while another process logs in. Default 5 minutes: a user may be typing. */
  readonly waitMs?: number
  /** After how long without a sign of life another process counts as dead. Default 5 s. */
  readonly staleMs?: number
  /** Hears why something is not kept or not used. */
  readonly onSkip?: (reason: string) => void
}

/** Credentials on disk, for the user's own eyes only. */
export interface CredentialCache {
  /** Why nothing is kept, if so. */
  readonly unusable: string | undefined
  /** What is kept under a key and still valid. */
  get(key: string): Promise<PluginCredential | undefined>
  /** What is kept, or else what `obtain` gives; of several processes one obtains and the others wait for it. */
  getOrObtain(key: string, obtain: () => Promise<PluginCredential>): Promise<PluginCredential>
  /** Drops what is kept, for example because a server has refused it. */
  forget(key: string): Promise<void>
}

/** Opens a cache in a directory of mode 0700; one that others can look into is not used, and says so. */
export async function openCredentialCache(
  directory: string,
  options: CredentialCacheOptions = {},
): Promise<CredentialCache> {
  const unusable = await openPrivateDirectory(directory)
  if (unusable !== undefined) options.onSkip?.(unusable)
  return new DiskCache(directory, options, unusable)
}

class DiskCache implements CredentialCache {
  readonly unusable: string | undefined
  readonly #directory: string
  readonly #options: CredentialCacheOptions
  readonly #clock: Clock

  constructor(directory: string, options: CredentialCacheOptions, unusable: string | undefined) {
    this.#directory = directory
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.unusable = unusable
  }

  async get(key: string): Promise<PluginCredential | undefined> {
    if (this.unusable !== undefined) return undefined
    const found = await readPrivateFile(this.#pathOf(key))
    if (!found) return undefined
    if ('problem' in found) {
      this.#options.onSkip?.(found.problem)
      return undefined
    }
    const credential = parseKept(found.text)
    return credential && this.#isValid(credential) ? credential : undefined
  }

  async getOrObtain(
    key: string,
    obtain: () => Promise<PluginCredential>,
  ): Promise<PluginCredential> {
    if (this.unusable !== undefined) return obtain()
    const kept = await this.get(key)
    if (kept) return kept
    const release = await this.#lock(key)
    try {
      const fromOther = await this.get(key)
      if (fromOther) return fromOther
      const credential = await obtain()
      await this.#keep(key, credential)
      return credential
    } finally {
      await release?.()
    }
  }

  async forget(key: string): Promise<void> {
    if (this.unusable === undefined) await rm(this.#pathOf(key), { force: true })
  }

  /** A disk that is full or read-only is no reason to be without a credential. */
  async #lock(key: string): Promise<(() => Promise<void>) | undefined> {
    const { waitMs = 300_000, staleMs = 5_000 } = this.#options
    const lock = acquireFileLock(`${this.#pathOf(key)}.lock`, {
      waitMs,
      staleMs,
      clock: this.#clock,
    })
    return lock.catch((error: unknown) => this.#skip(error))
  }

  async #keep(key: string, credential: PluginCredential): Promise<void> {
    const { expiresAt, ...rest } = credential
    const kept = { ...rest, ...(expiresAt !== undefined && { expiresAt: Number(expiresAt) }) }
    const written = replaceFile(this.#pathOf(key), JSON.stringify(kept), 0o600)
    await written.catch((error: unknown) => this.#skip(error))
  }

  #skip(error: unknown): undefined {
    const code = systemErrorCode(error) ?? 'unknown error'
    this.#options.onSkip?.(`${this.#directory} cannot be written to (${code})`)
  }

  #isValid({ expiresAt }: PluginCredential): boolean {
    const { skewMs = 10_000 } = this.#options
    return expiresAt === undefined || Number(expiresAt) - skewMs > this.#clock.now()
  }

  /** A key may hold names of users and servers, which are nobody's business. */
  #pathOf(key: string): string {
    return join(this.#directory, `${createHash('sha256').update(key).digest('hex')}.json`)
  }
}

function parseKept(text: string): PluginCredential | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? readKept(value) : undefined
  } catch {
    return undefined // half a file of some other program: as good as none
  }
}

function readKept(fields: Readonly<Record<string, unknown>>): PluginCredential | undefined {
  const { token, clientCertificateData, clientKeyData, expiresAt } = fields
  const credential = {
    ...(typeof token === 'string' && { token }),
    ...(typeof clientCertificateData === 'string' &&
      typeof clientKeyData === 'string' && { clientCertificateData, clientKeyData }),
  }
  if (Object.keys(credential).length === 0) return undefined
  return { ...credential, ...(typeof expiresAt === 'number' && { expiresAt }) }
}
