import { randomBytes } from 'node:crypto'
import { open, readFile, rm, stat, utimes } from 'node:fs/promises'
import { pause } from './abort.ts'
import type { Clock } from './clock.ts'
import { systemErrorCode } from './errors.ts'

/** How a lock is acquired. */
export interface FileLockOptions {
  /** How long to wait for another owner. */
  readonly waitMs: number
  /** A lock that its owner has not touched for so long is taken over; absent: never. */
  readonly staleMs?: number
  readonly clock: Clock
  readonly signal?: AbortSignal
}

const pollMs = 50

/**
 * Creates a lock file, exclusively among processes. Returns the function that releases it, or `undefined` if another
 * owner had it for `waitMs`. Throws if the file cannot be created, or the signal aborts.
 */
export async function acquireFileLock(
  path: string,
  options: FileLockOptions,
): Promise<(() => Promise<void>) | undefined> {
  const { clock, staleMs, signal = new AbortController().signal } = options
  const nonce = randomBytes(16).toString('hex')
  const giveUpAt = clock.monotonic() + options.waitMs
  const owner = staleMs === undefined ? undefined : new StaleLock(path, staleMs, clock)
  while (!(await create(path, nonce))) {
    if (await owner?.remove()) continue
    signal.throwIfAborted()
    if (clock.monotonic() >= giveUpAt) return undefined
    await pause(pollMs, signal)
  }
  return keepAlive(path, nonce, staleMs)
}

/** Also fails for a symbolic link at the path. */
async function create(path: string, nonce: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx', 0o600)
    await file.writeFile(nonce)
    await file.close()
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return false
    throw error
  }
}

/** A file that does not change for some time. Measured by our clock alone: that of a file server may differ. */
class UnchangedFile {
  readonly #path: string
  readonly #clock: Clock
  #seen = ''
  #since = 0
  content = ''

  constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
  }

  /** For how long it has been as it is, as far as we have seen. */
  async unchangedMs(): Promise<number> {
    this.content = await readFile(this.#path, 'utf8').catch(() => '')
    const mtimeMs = await stat(this.#path).then(
      (found) => found.mtimeMs,
      () => 0,
    )
    const seen = `${this.content} ${mtimeMs}`
    const now = this.#clock.monotonic()
    if (seen !== this.#seen) this.#since = now
    this.#seen = seen
    return now - this.#since
  }
}

/** Removes the lock of an owner that has died. */
class StaleLock {
  readonly #path: string
  readonly #takeoverPath: string
  readonly #staleMs: number
  readonly #lock: UnchangedFile
  readonly #takeover: UnchangedFile

  constructor(path: string, staleMs: number, clock: Clock) {
    this.#path = path
    this.#takeoverPath = `${path}.takeover`
    this.#staleMs = staleMs
    this.#lock = new UnchangedFile(path, clock)
    this.#takeover = new UnchangedFile(this.#takeoverPath, clock)
  }

  /**
   * True if the lock was removed. Of several processes that find it stale one removes it: the others would remove the
   * lock of the next owner. A second file excludes them, and is itself removed if its owner died.
   */
  async remove(): Promise<boolean> {
    if ((await this.#lock.unchangedMs()) <= this.#staleMs) return false
    if (!(await create(this.#takeoverPath, ''))) {
      if ((await this.#takeover.unchangedMs()) > this.#staleMs)
        await rm(this.#takeoverPath, { force: true })
      return false
    }
    try {
      const found = await readFile(this.#path, 'utf8').catch(() => undefined)
      if (found !== this.#lock.content) return false
      await rm(this.#path, { force: true })
      return true
    } finally {
      await rm(this.#takeoverPath, { force: true })
    }
  }
}

function keepAlive(path: string, nonce: string, staleMs: number | undefined): () => Promise<void> {
  const touch = (): void => {
    const now = new Date()
    utimes(path, now, now).catch(() => {}) // another process has taken it over
  }
  const timer = staleMs === undefined ? undefined : setInterval(touch, staleMs / 5).unref()
  return async () => {
    clearInterval(timer)
    const owner = await readFile(path, 'utf8').catch(() => '')
    if (owner === nonce) await rm(path, { force: true })
  }
}
