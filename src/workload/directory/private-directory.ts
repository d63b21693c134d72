import { lstat, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed } from '../../core/index.ts'

const prefix = 'sallyport-workload-'
const sticky = 0o1000
const writableByOthers = 0o022

/** Where directories may be made, and for whom. */
export interface PrivatePlace {
  /** The first that is safe is taken. */
  readonly runtimeDirectories: readonly string[]
  readonly pid: number
  readonly uid: number
  /** Whether there is such a process. */
  readonly isAlive: (pid: number) => boolean
}

/** Makes a directory that only this user can look into, and removes those of processes that were killed. */
export async function makePrivateDirectory(place: PrivatePlace): Promise<string> {
  const parent = await safeDirectory(place)
  await removeOrphans(parent, place)
  return mkdtemp(join(parent, `${prefix}${place.pid}-`))
}

/** One in which nobody but this user and root can put something else in the place of what we make. */
async function safeDirectory({ runtimeDirectories, uid }: PrivatePlace): Promise<string> {
  for (const path of runtimeDirectories) {
    const found = await stat(path).catch(() => undefined)
    const isTrusted = found?.uid === uid || found?.uid === 0
    const isShared = found && (found.mode & writableByOthers) !== 0 && (found.mode & sticky) === 0
    if (found?.isDirectory() && isTrusted && !isShared) return path
  }
  throw new CommandFailed(
    'NO_PRIVATE_DIRECTORY',
    `there is no place for the token that others cannot get at: ${runtimeDirectories.join(', ')}`,
    { hint: 'let XDG_RUNTIME_DIR name a directory of yours that nobody else can write' },
  )
}

async function removeOrphans(parent: string, { uid, isAlive }: PrivatePlace): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const path = join(parent, name)
    const found = await lstat(path).catch(() => undefined)
    // What others put there under such a name is theirs, and may lead anywhere.
    if (found?.isDirectory() && found.uid === uid) await rm(path, { recursive: true, force: true })
  }
}
