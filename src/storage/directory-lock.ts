import { createHash, randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
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

/** Others that take over a stale lock need no longer than this. */
const retryMs = 5

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
  const id = randomUUID()
  const content = JSON.stringify({ pid: owner.pid, startedAt: await startOf(owner.pid), id })
  const own = `${path}.${id}`
  await writeFile(own, content, { mode: 0o600 })
  try {
    while (!(await linked(own, path)) && !(await takenOver(path, own, owner))) await delay(retryMs)
  } finally {
    await rm(own, { force: true })
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

/**
 * Puts our lock in the place of a dead process's. Others may try the same at this moment, so there
 * is a claim to that very lock, which one of them gets; it counts only if the lock is still there.
 */
async function takenOver(path: string, own: string, owner: LockOwner): Promise<boolean> {
  const content = await readIfThere(path)
  if (content === undefined) return false
  const holder = await livingHolder(content, owner)
  if (holder) throw inUse(dirname(path), holder)
  const claim = `${path}.${createHash('sha256').update(content).digest('hex')}`
  if (!(await linked(own, claim))) {
    const other = await readIfThere(claim)
    if (other !== undefined && !(await livingHolder(other, owner))) await rm(claim, { force: true })
    return false
  }
  try {
    if ((await readIfThere(path)) !== content) return false
    await rename(own, path)
    return true
  } finally {
    await rm(claim, { force: true })
  }
}

async function livingHolder(content: string, owner: LockOwner): Promise<Holder | undefined> {
  const holder = parseHolder(content)
  return holder && (await isAlive(holder, owner)) ? holder : undefined
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
