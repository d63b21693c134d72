import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Logger, systemErrorCode } from '../core/index.ts'

/** How files are watched. */
export interface WatchFilesOptions {
  readonly log: Logger
  /** Aborts to end the watch. */
  readonly signal: AbortSignal
  /** For file systems that report nothing, and for what is missed. */
  readonly pollMs?: number
  /** How long several changes count as one, so that a certificate and its key are read together. */
  readonly settleMs?: number
}

/**
 * Calls back, once at a time, whenever one of the files changes, comes or goes: written in place,
 * renamed over, or reached through a link that now points elsewhere (as Kubernetes swaps `..data`).
 * Changes count from the moment the promise resolves.
 */
export async function watchFiles(
  paths: readonly string[],
  onChange: () => void | Promise<void>,
  options: WatchFilesOptions,
): Promise<void> {
  await new FileWatch(paths, onChange, options).start()
}

class FileWatch {
  readonly #paths: readonly string[]
  readonly #onChange: () => void | Promise<void>
  readonly #options: WatchFilesOptions
  readonly #directories = new Map<string, { watcher: FSWatcher; identity: string }>()
  #state = ''
  #settle: NodeJS.Timeout | undefined
  #checking = false
  #checkAgain = false

  constructor(
    paths: readonly string[],
    onChange: () => void | Promise<void>,
    options: WatchFilesOptions,
  ) {
    this.#paths = paths
    this.#onChange = onChange
    this.#options = options
  }

  async start(): Promise<void> {
    const { signal, pollMs = 10_000 } = this.#options
    if (signal.aborted) return
    await this.#watchDirectories()
    this.#state = await this.#stateOfFiles()
    const poll = setInterval(() => void this.#check(), pollMs).unref()
    signal.addEventListener('abort', () => {
      clearInterval(poll)
      clearTimeout(this.#settle)
      for (const { watcher } of this.#directories.values()) watcher.close()
    })
  }

  #changed(): void {
    const { signal, settleMs = 100 } = this.#options
    clearTimeout(this.#settle)
    if (!signal.aborted) this.#settle = setTimeout(() => void this.#check(), settleMs).unref()
  }

  async #check(): Promise<void> {
    if (this.#checking) {
      this.#checkAgain = true
      return
    }
    this.#checking = true
    try {
      do {
        this.#checkAgain = false
        await this.#checkOnce()
      } while (this.#checkAgain)
    } catch (err) {
      this.#options.log.error({ err, files: this.#paths }, 'handling a changed file failed')
    } finally {
      this.#checking = false
    }
  }

  async #checkOnce(): Promise<void> {
    await this.#watchDirectories()
    const state = await this.#stateOfFiles()
    if (state === this.#state || this.#options.signal.aborted) return
    this.#state = state
    await this.#onChange()
  }

  async #stateOfFiles(): Promise<string> {
    return (await Promise.all(this.#paths.map(stateOf))).join('\n')
  }

  // Directories, because a watch on a file stays with the old one when another is renamed over it.
  async #watchDirectories(): Promise<void> {
    for (const directory of new Set(this.#paths.map((path) => dirname(path)))) {
      const identity = await identityOf(directory)
      const known = this.#directories.get(directory)
      if (known?.identity === identity || this.#options.signal.aborted) continue
      known?.watcher.close()
      this.#directories.delete(directory)
      if (identity !== undefined) this.#watchDirectory(directory, identity)
    }
  }

  #watchDirectory(directory: string, identity: string): void {
    const { log } = this.#options
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#changed())
      watcher.on('error', (err) =>
        log.debug({ err, directory }, 'file events ended, polling goes on'),
      )
      this.#directories.set(directory, { watcher, identity })
    } catch (err) {
      log.debug({ err, directory }, 'no file events, changes are found by polling')
    }
  }
}

async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return systemErrorCode(error) ?? 'unknown'
  }
}

async function identityOf(directory: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(directory, { bigint: true })
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}
