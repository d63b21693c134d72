import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

const prefix = 'sallyport-workload-'

/** Where directories are made, and for whom. */
export interface PrivatePlace {
  readonly runtimeDirectory: string
  readonly pid: number
  readonly uid: number
  /** Whether there is such a process. */
  readonly isAlive: (pid: number) => boolean
}

/** Makes a directory that only this user can look into, and removes those of processes that were killed. */
export async function makePrivateDirectory(place: PrivatePlace): Promise<string> {
  await removeOrphans(place)
  return mkdtemp(join(place.runtimeDirectory, `${prefix}${place.pid}-`))
}

async function removeOrphans({ runtimeDirectory, uid, isAlive }: PrivatePlace): Promise<void> {
  for (const name of await readdir(runtimeDirectory)) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const path = join(runtimeDirectory, name)
    const found = await lstat(path).catch(() => undefined)
    // What others put there under such a name is theirs, and may lead anywhere.
    if (found?.isDirectory() && found.uid === uid) await rm(path, { recursive: true, force: true })
  }
}
