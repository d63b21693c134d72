import { access, type FileHandle, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import {
  type Clock,
  CommandFailed,
  type Logger,
  type RedactedText,
  systemErrorCode,
} from '../../core/index.ts'
import { defaultAuditFlushBytes, defaultAuditFlushMs, maxBufferedAuditBytes } from '../limits.ts'
import type { AuditSink } from './recorder.ts'

const stamp = '\\d{4}-\\d{2}-\\d{2}T\\d{2}-\\d{2}-\\d{2}\\.\\d{3}'

/** Renames a log to its name with the time in it, as `audit-2026-01-31T12-00-00.000.log`. */
async function renameToBackup(path: string, nowMs: number): Promise<void> {
  for (let ms = nowMs; ; ms++) {
    const backup = backupName(path, ms)
    if (await exists(backup)) continue
    await rename(path, backup)
    return
  }
}

/** Removes the oldest of the rotated logs; 0 keeps all. */
async function pruneBackups(path: string, keep: number): Promise<void> {
  if (keep === 0) return
  const folder = dirname(path)
  const extension = extname(path)
  const stem = basename(path, extension)
  const isBackup = (name: string): boolean =>
    name.startsWith(`${stem}-`) &&
    name.endsWith(extension) &&
    new RegExp(`^${stamp}$`).test(name.slice(stem.length + 1, name.length - extension.length))
  const backups = (await readdir(folder)).filter(isBackup).sort()
  for (const name of backups.slice(0, -keep)) await rm(join(folder, name), { force: true })
}

function backupName(path: string, ms: number): string {
  const extension = extname(path)
  const time = new Date(ms).toISOString().slice(0, 23).replaceAll(':', '-')
  return join(dirname(path), `${basename(path, extension)}-${time}${extension}`)
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** What is used of an open file. */
export type LogFile = Pick<FileHandle, 'write' | 'truncate' | 'sync' | 'close' | 'stat' | 'chmod'>

/** Where and how an audit log is kept. */
export interface AuditLogOptions {
  readonly path: string
  /** Size at which the file is rotated. */
  readonly maxBytes: number
  /** How many rotated files are kept; 0 keeps all. */
  readonly maxBackups: number
  readonly clock: Clock
  readonly log: Logger
  readonly flushBytes?: number
  readonly flushMs?: number
  readonly maxBufferedBytes?: number
  readonly openFile?: (path: string) => Promise<LogFile>
}

/** UTF-8 needs no more for a UTF-16 code unit. */
const maxBytesPerCharacter = 3

const openPrivate = (path: string): Promise<LogFile> => open(path, 'a', 0o600)

/** Opens an audit log. @throws CommandFailed if it cannot be written. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const log = new AuditLog(options)
  try {
    await log.open()
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed(
      'AUDIT_LOG_NOT_WRITABLE',
      `cannot write the audit log ${options.path}: ${code}`,
      { hint: 'choose another file with --audit-log-path, or - for the standard output', cause },
    )
  }
  return log
}

/**
 * A file of audit lines, written in batches and rotated by size. A full disk costs lines, which are
 * counted, but neither memory nor requests, and never leaves half a line behind.
 */
export class AuditLog implements AuditSink {
  readonly #options: AuditLogOptions
  readonly #flushBytes: number
  readonly #maxBufferedBytes: number
  #file: LogFile | undefined
  #size = 0
  #rotateAt: number
  #lines: string[] = []
  #bufferedBytes = 0
  #dropped = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #failing = false
  #closed = false

  constructor(options: AuditLogOptions) {
    this.#options = options
    this.#rotateAt = options.maxBytes
    this.#flushBytes = options.flushBytes ?? defaultAuditFlushBytes
    this.#maxBufferedBytes = options.maxBufferedBytes ?? maxBufferedAuditBytes
  }

  get dropped(): number {
    return this.#dropped
  }

  async open(): Promise<void> {
    const file = await (this.#options.openFile ?? openPrivate)(this.#options.path)
    const stat = await file.stat()
    if (stat.isFile() && (stat.mode & 0o077) !== 0) await file.chmod(0o600)
    this.#size = stat.size
    this.#file = file
  }

  write(line: RedactedText): void {
    if (this.#closed || this.#bufferedBytes + line.length > this.#maxBufferedBytes) {
      this.#drop(1, this.#closed ? 'the log is closed' : 'the buffer is full')
      return
    }
    this.#lines.push(line)
    this.#bufferedBytes += line.length
    if (this.#bufferedBytes >= this.#flushBytes) this.#startWriting()
    else
      this.#timer ??= setTimeout(
        () => this.#startWriting(),
        this.#options.flushMs ?? defaultAuditFlushMs,
      )
  }

  /** Resolves when all lines so far are in the file or counted as dropped. */
  async flush(): Promise<void> {
    this.#startWriting()
    while (this.#writing) await this.#writing
  }

  async close(): Promise<void> {
    if (this.#closed) return
    await this.flush()
    this.#closed = true
    const file = this.#file
    this.#file = undefined
    await file?.sync().catch(() => {}) // pipes and terminals cannot be synced
    await file?.close()
  }

  #startWriting(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#takeBatch()
      try {
        await this.#append(Buffer.from(lines.join('')))
        this.#recovered()
      } catch (err) {
        this.#drop(lines.length, err)
      }
    }
  }

  /** The next lines, as many as fit into one file; at least one. */
  #takeBatch(): string[] {
    if (this.#bufferedBytes * maxBytesPerCharacter <= this.#options.maxBytes) {
      this.#bufferedBytes = 0
      return this.#lines.splice(0)
    }
    let bytes = 0
    let length = 0
    let count = 0
    for (const line of this.#lines) {
      bytes += Buffer.byteLength(line)
      if (count > 0 && bytes > this.#options.maxBytes) break
      length += line.length
      count++
    }
    this.#bufferedBytes -= length
    return this.#lines.splice(0, count)
  }

  async #append(bytes: Buffer): Promise<void> {
    if (this.#size > 0 && this.#size + bytes.length > this.#rotateAt) await this.#rotate()
    if (this.#file === undefined) await this.open()
    const file = this.#file
    if (file === undefined) throw new Error('the audit log is not open')
    let written = 0
    try {
      while (written < bytes.length) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written)
        written += bytesWritten
      }
    } catch (error) {
      if (written > 0) await file.truncate(this.#size).catch(() => {}) // the write's error counts
      throw error
    }
    this.#size += bytes.length
  }

  async #rotate(): Promise<void> {
    const { path, clock, maxBytes, maxBackups, log } = this.#options
    this.#rotateAt = maxBytes
    const file = this.#file
    this.#file = undefined
    try {
      await file?.sync()
      await file?.close()
      await renameToBackup(path, clock.now())
      await pruneBackups(path, maxBackups)
    } catch (err) {
      this.#rotateAt = this.#size + maxBytes // not again with every batch
      log.warn({ err, path }, 'cannot rotate the audit log')
    }
    await this.open()
  }

  #drop(lines: number, err: unknown): void {
    this.#dropped += lines
    if (this.#failing) return
    this.#failing = true
    const { log, path } = this.#options
    log.error({ err, path }, 'cannot write the audit log, dropping events')
  }

  #recovered(): void {
    if (!this.#failing) return
    this.#failing = false
    const { log, path } = this.#options
    log.warn({ path, dropped: this.#dropped }, 'audit log is writable again')
  }
}
