import { randomBytes } from 'node:crypto'
import { link, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { pause, systemErrorCode } from '../../core/index.ts'

/** How patient a lock is. */
export interface LockTimes {
  /** How long to wait for others. */
  readonly waitMs: number
  /** A lock whose owner has not touched it for so long is taken over. */
  readonly staleMs: number
  readonly monotonic: () => number
}

const pollMs = 50

/** Locks a path against other processes; undefined if others held it all the time. Call the result to release. */
export async function lockFile(
  path: string,
  times: LockTimes,
): Promise<(() => Promise<void>) | undefined> {
  const nonce = randomBytes(16).toString('hex')
  const giveUpAt = times.monotonic() + times.waitMs
  const watch = new OwnerWatch(path, times)
  for (;;) {
    if (await create(path, nonce)) return keepAlive(path, nonce, times)
    const dead = await watch.deadOwner()
    if (dead !== undefined) await takeAside(path, dead)
    else if (times.monotonic() >= giveUpAt) return undefined
    else await pause(pollMs, new AbortController().signal)
  }
}

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

/** Sees whether an owner still lives: it touches its lock again and again. Clocks of others do not matter. */
class OwnerWatch {
  readonly #path: string
  readonly #times: LockTimes
  #seen = ''
  #since = 0

  constructor(path: string, times: LockTimes) {
    this.#path = path
    this.#times = times
  }

  /** The nonce of an owner that has died. */
  async deadOwner(): Promise<string | undefined> {
    const [nonce, touched] = await Promise.all([
      readFile(this.#path, 'utf8').catch(() => ''),
      stat(this.#path).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ])
    const seen = `${nonce} ${touched}`
    const now = this.#times.monotonic()
    if (seen !== this.#seen) {
      this.#seen = seen
      this.#since = now
    }
    return now - this.#since > this.#times.staleMs ? nonce : undefined
  }
}

/** Of several who find a dead owner's lock, one moves it away; whoever moves a new one by mistake puts it back. */
async function takeAside(path: string, dead: string): Promise<void> {
  const aside = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await rename(path, aside)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return
    throw error
  }
  if ((await readFile(aside, 'utf8')) !== dead) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

function keepAlive(path: string, nonce: string, { staleMs }: LockTimes): () => Promise<void> {
  const touch = (): void => {
    const now = new Date()
    utimes(path, now, now).catch(() => {}) // it may be gone: then others believe that we are dead
  }
  const timer = setInterval(touch, staleMs / 5)
  timer.unref()
  return async () => {
    clearInterval(timer)
    const owner = await readFile(path, 'utf8').catch(() => '')
    if (owner === nonce) await rm(path, { force: true })
  }
}
