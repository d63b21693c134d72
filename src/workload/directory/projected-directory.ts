import { randomBytes } from 'node:crypto'
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, CommandFailed } from '../../core/index.ts'

const current = '..data'

/**
 * A directory whose files change all at once, laid out as the kubelet does it: `token` leads to
 * `..data/token`, and `..data` to the directory of the moment. Nobody but its owner can look into it.
 */
export class ProjectedDirectory {
  readonly path: string
  readonly #clock: Clock
  /** Remembered and never read back: a link that somebody else put there must lead us nowhere. */
  #versions: string[] = []

  private constructor(path: string, clock: Clock) {
    this.path = path
    this.#clock = clock
  }

  /** Makes the directory; it must not be there yet. */
  static async create(path: string, clock: Clock): Promise<ProjectedDirectory> {
    await mkdir(path, { mode: 0o700 })
    return new ProjectedDirectory(path, clock)
  }

  /** Puts new contents in the place of all files; readers see either all of the old ones or all of the new. */
  async replace(files: ReadonlyMap<string, string>): Promise<void> {
    const version = versionName(this.#clock.now())
    const directory = join(this.path, version)
    await mkdir(directory, { mode: 0o700 })
    const outdated = this.#versions
    this.#versions = [...outdated, version]
    for (const [name, content] of files)
      await writeFile(join(directory, name), content, { mode: 0o600, flag: 'wx' })
    await this.#link(current, version)
    for (const name of files.keys()) await this.#link(name, `${current}/${name}`)
    for (const old of outdated) await rm(join(this.path, old), { recursive: true, force: true })
    this.#versions = [version]
  }

  /** Makes `name` a link to `target` in one step, whatever was there. */
  async #link(name: string, target: string): Promise<void> {
    const path = join(this.path, name)
    const present = await readlink(path).catch(() => undefined)
    if (present === target) return
    const temporary = `${path}_tmp`
    await rm(temporary, { recursive: true, force: true })
    await symlink(target, temporary)
    await rename(temporary, path)
  }
}

/** A name that sorts by time, as the kubelet's do. */
function versionName(now: number): string {
  const time = new Date(now).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '_')
  return `..${time}.${randomBytes(4).readUInt32BE()}`
}

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
