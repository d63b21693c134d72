import { randomUUID } from 'node:crypto'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed, isRecord, systemErrorCode } from '../core/index.ts'

/** Who wants the lock, and how to find out whether its holder still runs. */
export interface LockOwner {
  readonly pid: number
  /** Whether any process has this id now. */
  readonly isRunning: (pid: number) => boolean
}

/** A lock that is held. */
export interface DirectoryLock {
  release(): Promise<void>
}

interface Holder {
  readonly pid: number
  /** Tells the process from another one that got its id later; empty where that is not known. */
  readonly startedAt: string
}

/**
 * Takes the lock file of a data directory; throws `CommandFailed` while a living process holds it.
 * The lock of a process that has died is taken over. It only sees processes of its own machine and
 * pid namespace: two containers must not share a data directory.
 */
export async function acquireDirectoryLock(
  directory: string,
  owner: LockOwner,
): Promise<DirectoryLock> {
  const path = join(directory, 'lock')
  const content = JSON.stringify({ pid: owner.pid, startedAt: await startOf(owner.pid) })
  const own = `${path}.${randomUUID()}`
  await writeFile(own, content, { mode: 0o600 })
  try {
    while (!(await linked(own, path))) await removeIfStale(directory, path, owner)
  } finally {
    await unlink(own)
  }
  return { release: () => releaseLock(path, content) }
}

/** With its content from the first moment on, unlike a file that is created and then written. */
async function linked(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path)
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return false
    throw error
  }
}

async function removeIfStale(directory: string, path: string, owner: LockOwner): Promise<void> {
  const content = await readIfThere(path)
  if (content === undefined) return
  const holder = parseHolder(content)
  if (holder && (await isAlive(holder, owner))) throw inUse(directory, holder)
  // Moved away before it is removed: it may be that another one has just taken the stale lock over.
  const aside = `${path}.${randomUUID()}`
  try {
    await rename(path, aside)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return
    throw error
  }
  if ((await readFile(aside, 'utf8')) !== content) await linked(aside, path)
  await unlink(aside)
}

async function isAlive(holder: Holder, owner: LockOwner): Promise<boolean> {
  if (!owner.isRunning(holder.pid)) return false
  const startedAt = await startOf(holder.pid)
  return startedAt === '' || holder.startedAt === '' || startedAt === holder.startedAt
}

function inUse(directory: string, holder: Holder): CommandFailed {
  return new CommandFailed(
    'DATA_DIR_IN_USE',
    `the data directory ${directory} is in use by process ${holder.pid}`,
    { hint: 'stop that process, or choose another directory with --data-dir' },
  )
}

/** The boot and the clock tick in it at which a process started, as Linux tells it. */
async function startOf(pid: number): Promise<string> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // Field 22; the second field is in brackets and may itself hold spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return `${boot.trim()}/${fields[19] ?? ''}`
  } catch {
    return ''
  }
}

async function releaseLock(path: string, content: string): Promise<void> {
  if ((await readIfThere(path)) === content) await unlink(path)
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

function parseHolder(content: string): Holder | undefined {
  try {
    const fields: unknown = JSON.parse(content)
    if (!isRecord(fields)) return undefined
    const { pid, startedAt } = fields
    if (typeof pid !== 'number' || typeof startedAt !== 'string') return undefined
    return { pid, startedAt }
  } catch {
    return undefined
  }
}
