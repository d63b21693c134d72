import { type Backoff, type Clock, Secret, unlessAborted } from '../../core/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import { readCredentialFile } from '../credential-file.ts'
import { CredentialError } from '../errors.ts'
import { problemOfKeyPair } from '../exec/decode-output.ts'
import { type CredentialObserver, nobody, provesTheSame, retryBackoff } from './source.ts'

/** How something outside the process is looked at. */
export interface PolledParts<T> {
  readonly read: () => Promise<T>
  readonly same: (a: T, b: T) => boolean
  /** It is read no more often than this. */
  readonly periodMs: number
  readonly clock: Clock
  /** Counts until something could be read. */
  readonly initial?: T
  /** Told when what was read before is kept because it cannot be read now. */
  readonly onFailure: (error: unknown) => void
}

type Listener<T> = (next: T, previous: T) => void

/** How often it is looked at while somebody waits for a change, although nobody asks for the value. */
const idlePollMs = 5 * 60_000

/** A value that is kept somewhere else and may change there; the last good one counts. */
export class PolledValue<T> {
  readonly #parts: PolledParts<T>
  readonly #listeners = new Set<{ readonly call: Listener<T> }>()
  readonly #forced: Backoff
  #held: { readonly value: T } | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<T> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(parts: PolledParts<T>) {
    this.#parts = parts
    this.#forced = retryBackoff(parts.clock)
    if (parts.initial !== undefined) this.#held = { value: parts.initial }
  }

  /** The value, read again if that is due. */
  current(): Promise<T> {
    const { clock, periodMs } = this.#parts
    if (this.#held && clock.monotonic() - this.#readAt < periodMs) {
      return Promise.resolve(this.#held.value)
    }
    return this.#read()
  }

  /** The value, read again now unless that was done a moment ago. */
  fresh(): Promise<T> {
    if (this.#held && !this.#forced.isDue) return Promise.resolve(this.#held.value)
    this.#forced.next()
    return this.#read()
  }

  onChange(call: Listener<T>): () => void {
    const entry = { call }
    this.#listeners.add(entry)
    this.#timer ??= setInterval(() => void this.#read().catch(() => {}), idlePollMs).unref()
    return () => {
      this.#listeners.delete(entry)
      if (this.#listeners.size === 0) this.#stopTimer()
    }
  }

  dispose(): void {
    this.#listeners.clear()
    this.#stopTimer()
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #read(): Promise<T> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readOnce(): Promise<T> {
    const { read, same, clock, onFailure } = this.#parts
    const before = this.#held
    try {
      const value = await read()
      this.#readAt = clock.monotonic()
      if (before && same(before.value, value)) return before.value
      this.#held = { value }
      if (before) for (const { call } of Array.from(this.#listeners)) call(value, before.value)
      return value
    } catch (error) {
      if (!before) throw error
      this.#readAt = clock.monotonic()
      onFailure(error)
      return before.value
    }
  }
}

/** What file sources need of their host. */
export interface FileSourceHost {
  readonly clock: Clock
  readonly observer?: CredentialObserver
}

/** A minute, less the ten seconds in which a token that is about to be replaced is not trusted. */
const tokenPeriodMs = 50_000
/** Certificates are asked for with every connection, so a change is seen soon. */
const certificatePeriodMs = 10_000

/**
 * The token in a file, read again once a minute: such as that of a service account. A token that is given
 * beside it counts while the file has none.
 */
export function tokenFileSource(
  path: string,
  host: FileSourceHost,
  beside?: Secret,
): CredentialSource {
  const read = async (): Promise<Credential> => {
    const token = (await readCredentialFile(path)).trim()
    if (token === '') {
      throw new CredentialError('FILE', `${path} has no token in it`, {
        hint: 'write the token into it, or remove tokenFile from the user',
      })
    }
    return { token: new Secret(token) }
  }
  const initial = beside && { token: beside }
  return polledSource({ read, periodMs: tokenPeriodMs, ...(initial && { initial }) }, host)
}

/** Where a client certificate and its key are: text or path each. */
export interface CertificateFiles {
  readonly cert: { readonly pem: string } | { readonly path: string }
  readonly key: { readonly pem: Secret } | { readonly path: string }
}

/** A client certificate and its key in files, read again when they are replaced. */
export function certificateFileSource(
  { cert, key }: CertificateFiles,
  host: FileSourceHost,
): CredentialSource {
  const read = async (): Promise<Credential> => {
    const [certPem, keyPem] = await Promise.all([
      'pem' in cert ? cert.pem : readCredentialFile(cert.path),
      'pem' in key ? key.pem : readCredentialFile(key.path).then((text) => new Secret(text)),
    ])
    // One file may have been replaced and the other not yet: then the pair before is kept.
    const problem = problemOfKeyPair(certPem, keyPem.reveal())
    if (problem) throw new CredentialError(problem.code, `the user has ${problem.why}`)
    return { clientCertificate: { certPem, keyPem } }
  }
  return polledSource({ read, periodMs: certificatePeriodMs }, host)
}

function polledSource(
  file: Pick<PolledParts<Credential>, 'read' | 'periodMs' | 'initial'>,
  { clock, observer = nobody }: FileSourceHost,
): CredentialSource {
  const onFailure = (error: unknown): void =>
    observer.notify({ type: 'refresh-failed', error, usableForMs: Number.POSITIVE_INFINITY })
  const value = new PolledValue({ ...file, same: provesTheSame, clock, onFailure })
  return {
    current: (signal) => unlessAborted(value.current(), signal),
    renew: async (used, _refusal, signal) => {
      const next = await unlessAborted(value.fresh(), signal)
      return provesTheSame(next, used) ? undefined : next
    },
    onRotate: (listener) => value.onChange(listener),
    dispose: () => value.dispose(),
  }
}
