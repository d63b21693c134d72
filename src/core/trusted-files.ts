import { constants, type Stats } from 'node:fs'
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  stat,
} from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { CommandFailed, systemErrorCode } from './errors.ts'

/**
 * How far other users may have a hand in a file:
 * - `private`: in a directory of our own, with a secret. No other user may read or write it, nor
 *   any directory on the way to it.
 * - `given`: named by a flag. Only we and root may write it. Others may read it, as they can read
 *   the files of a Secret volume in a Pod, which root owns.
 */
export type FileTrust = 'private' | 'given'

const root = 0
const writableByOthers = 0o022
const accessibleByOthers = 0o077
const sticky = 0o1000

/** The user of this process; `undefined` where the system has no such numbers. */
export const ownUserId = (): number | undefined => globalThis.process.getuid?.()

/** The user for whom files are checked. Everything but the user is what the system says unless given. */
export interface FileUser {
  /** `undefined` where the system has no such numbers: nothing is checked there. */
  readonly userId: number | undefined
  /** Text of an account file, `/etc/passwd` or `/etc/group`. */
  readonly readAccounts?: (path: string) => Promise<string>
}

const self = (): FileUser => ({ userId: ownUserId() })

/** What is wrong with a file or directory, and the command that fixes it. */
interface Problem {
  readonly path: string
  readonly why: string
  readonly fix: string
}

/** More are counted only. */
const maxListed = 20

/** Files or directories that other users control, or could have. */
class Untrusted extends CommandFailed {
  constructor(problems: readonly [Problem, ...Problem[]]) {
    const [{ path, why, fix }, ...more] = problems
    const listed = problems.slice(0, maxListed)
    const rest = problems.length > maxListed ? [`and ${problems.length - maxListed} more`] : []
    const lines = (head: string, each: (problem: Problem) => string): string =>
      [head, ...listed.map(each), ...rest].join('\n  - ')
    super(
      'FILE_UNTRUSTED',
      more.length === 0
        ? `${path} cannot be trusted: ${why}`
        : lines('several files or directories cannot be trusted:', (p) => `${p.path}: ${p.why}`),
      { hint: more.length === 0 ? fix : lines('for each of them:', (p) => p.fix) },
    )
  }
}

/**
 * Opens a file whose content is trusted, after a look at the very file that is read. Throws
 * `FILE_UNTRUSTED`, or the error of the system. The caller closes it.
 */
export async function openTrustedFile(
  path: string,
  trust: FileTrust,
  user: FileUser = self(),
): Promise<FileHandle> {
  const check = new FileCheck(user)
  const file = await (trust === 'private' ? openPrivate(path, check) : openGiven(path, check))
  try {
    const found = await file.stat()
    check.owner(path, found, advice.file)
    await check.mode(path, found, trust === 'private' ? accessibleByOthers : writableByOthers)
    check.refuse()
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Reads a text file as `openTrustedFile` opens it. */
export async function readTrustedFile(
  path: string,
  trust: FileTrust,
  user: FileUser = self(),
): Promise<string> {
  const file = await openTrustedFile(path, trust, user)
  try {
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

/** Reads a file that a flag names; `failure` makes the error for one that cannot be read, from its code. */
export async function readGivenFile(
  path: string,
  failure: (code: string, cause: unknown) => Error,
): Promise<string> {
  try {
    return await readTrustedFile(path, 'given')
  } catch (error) {
    if (error instanceof Untrusted) throw error
    throw failure(systemErrorCode(error) ?? 'unknown error', error)
  }
}

/** As `readTrustedFile`; `undefined` if there is no such file. */
export async function readTrustedFileIfPresent(
  path: string,
  trust: FileTrust,
): Promise<string | undefined> {
  try {
    return await readTrustedFile(path, trust)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** A directory with parts, and the files directly in them that no other user may read. */
export interface TrustedDirectory {
  readonly path: string
  /** Names of directories in it, or of links to some; those that are missing are skipped. */
  readonly parts?: readonly string[]
  readonly isSecret?: (file: string) => boolean
}

/**
 * Requires that no other user but root has made, or can change, what is in the directory and in its
 * parts, as sshd does: neither they, nor any directory above them, nor any direct entry may be another
 * user's or writable by others. A directory above may be writable if it is sticky, as /tmp is. The error
 * names all directories that are refused, else all entries. Returns the path without links, to be used
 * from then on.
 */
export async function requireTrustedDirectory(
  { path, parts = [], isSecret = () => false }: TrustedDirectory,
  user: FileUser = self(),
): Promise<string> {
  const check = new FileCheck(user)
  const top = await realpath(path)
  const directories = [top]
  await check.way(top, top)
  for (const part of parts) {
    const real = await realpath(join(top, part)).catch((error: unknown) => {
      // A directory that is refused may be unreadable too.
      if (systemErrorCode(error) !== 'ENOENT') check.refuse()
      return goneMeanwhile(error)
    })
    if (real === undefined) continue
    await check.way(real, top)
    directories.push(join(top, part))
  }
  check.refuse()
  for (const each of directories) await check.entries(each, isSecret)
  check.refuse()
  return top
}

/** Makes a directory for its owner only, whatever the umask, if it is not there. */
export async function makePrivateDirectory(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined) await chmod(path, 0o700)
}

function goneMeanwhile(error: unknown): undefined {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

async function openPrivate(path: string, check: FileCheck): Promise<FileHandle> {
  const real = await realpath(path)
  await check.way(dirname(real))
  check.refuse()
  return open(real, constants.O_RDONLY | constants.O_NOFOLLOW)
}

/** The owner of a link decides what is read by it. Pipes (`/dev/stdin`, `<(...)`) have no path without links. */
async function openGiven(path: string, check: FileCheck): Promise<FileHandle> {
  const found = await lstat(path)
  if (found.isSymbolicLink()) check.owner(path, found, advice.file)
  check.refuse()
  return open(path, constants.O_RDONLY)
}

/** What to do about another user's file or directory. `chown` is for what is ours by its place only. */
const advice = {
  own: (path: string, userId: number) =>
    `check who made it, then: chown -h ${userId} ${word(path)}`,
  file: (path: string) => `run as the user that owns ${word(path)}, or use a copy of your own`,
  directory: (path: string) =>
    `run as the user that owns ${word(path)}, or choose a directory elsewhere`,
} as const

/** A path as one word of a shell: other users may have chosen its name. */
const word = (path: string): string =>
  /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`

/** Collects what is wrong with files, so that one error names all of it. */
class FileCheck {
  readonly #user: FileUser
  readonly #problems = new Map<string, Problem>()
  #ownGroup: Promise<number | undefined> | undefined

  constructor(user: FileUser) {
    this.#user = user
  }

  /** Throws what was found. */
  refuse(): void {
    const [first, ...more] = this.#problems.values()
    if (first) throw new Untrusted([first, ...more])
  }

  /**
   * Checks a directory without links in its path, and all above it. `top` and what is in it are ours by
   * their place, unless they are in a directory of another user.
   */
  async way(real: string, top?: string): Promise<void> {
    let at = ''
    let isForeign = false
    for (const name of real === sep ? [''] : real.split(sep)) {
      at = at.endsWith(sep) ? `${at}${name}` : `${at}${sep}${name}`
      const found = await lstat(at)
      const isOurs: boolean =
        top !== undefined && `${at}${sep}`.startsWith(`${top}${sep}`) && !isForeign
      const hasOwner = this.owner(at, found, isOurs ? advice.own : advice.directory)
      isForeign ||= !hasOwner && !isOurs
      const isShared = at !== real && (found.mode & sticky) !== 0
      if (!isShared) await this.mode(at, found, writableByOthers)
    }
  }

  /** Checks what is directly in a directory. */
  async entries(path: string, isSecret: (file: string) => boolean): Promise<void> {
    for (const name of (await readdir(path).catch(goneMeanwhile)) ?? []) {
      const entry = join(path, name)
      const found = await lstat(entry).catch(goneMeanwhile)
      if (found) this.owner(entry, found, advice.own)
      const target = found?.isSymbolicLink() ? await stat(entry).catch(goneMeanwhile) : found
      if (!target?.isFile() && !target?.isDirectory()) continue
      this.owner(entry, target, target === found ? advice.own : advice.file)
      await this.mode(entry, target, isSecret(entry) ? accessibleByOthers : writableByOthers)
    }
  }

  /** Whether the owner is the user or root. */
  owner(path: string, { uid }: Stats, fix: (path: string, userId: number) => string): boolean {
    const { userId } = this.#user
    if (userId === undefined || uid === userId || uid === root) return true
    this.#add(
      path,
      `it belongs to another user (uid ${uid}, this process runs as uid ${userId})`,
      fix(path, userId),
    )
    return false
  }

  async mode(path: string, { mode, gid }: Stats, forbidden: number): Promise<void> {
    if (this.#user.userId === undefined || (mode & forbidden) === 0) return
    const isForGroupOnly = (mode & forbidden & 0o007) === 0
    if (forbidden === writableByOthers && isForGroupOnly && (await this.#isOwnGroup(gid))) return
    const isWritable = (mode & writableByOthers) !== 0
    this.#add(
      path,
      `other users can ${isWritable ? 'write' : 'read'} it (mode ${(mode & 0o7777).toString(8).padStart(4, '0')})`,
      isWritable
        ? `check its content, then: chmod go${forbidden === writableByOthers ? '-w' : '='} ${word(path)}`
        : `consider the key in it as known to others, then: chmod go= ${word(path)}`,
    )
  }

  /** The first problem of a path counts. */
  #add(path: string, why: string, fix: string): void {
    if (!this.#problems.has(path)) this.#problems.set(path, { path, why, fix })
  }

  async #isOwnGroup(gid: number): Promise<boolean> {
    this.#ownGroup ??= ownGroup(this.#user)
    return gid === (await this.#ownGroup)
  }
}

/**
 * The group of which the user is the only member, as most distributions make one for each user, with
 * umask 002. `undefined` if there are other members, or that cannot be known. Root has none: in
 * containers users without an account run with group 0.
 */
async function ownGroup({ userId, readAccounts }: FileUser): Promise<number | undefined> {
  if (userId === undefined || userId === root) return undefined
  const read = readAccounts ?? ((path: string) => readFile(path, 'utf8'))
  try {
    const users = records(await read('/etc/passwd')).map(([name = '', , uid, gid]) => ({
      name,
      uid: Number(uid),
      gid: Number(gid),
    }))
    const groups = records(await read('/etc/group'))
    const group = users.find(({ uid }) => uid === userId)?.gid
    const isHarmless = ({ uid }: { readonly uid: number }): boolean =>
      uid === userId || uid === root
    const known = new Set(users.filter(isHarmless).map(({ name }) => name))
    const others = users.filter((user) => !isHarmless(user))
    const own = groups.filter(([, , gid]) => Number(gid) === group)
    const members = own.flatMap(([, , , names = '']) => names.split(',').map((name) => name.trim()))
    const isShared =
      own.length === 0 ||
      group === root ||
      others.some(({ name, gid }) => gid === group || members.includes(name)) ||
      members.some((name) => name !== '' && !known.has(name))
    return isShared ? undefined : group
  } catch {
    return undefined
  }
}

/** The lines of an account file. One that includes another source (`+`) does not name everybody. */
function records(text: string): string[][] {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
  if (lines.some((line) => /^[+-]/.test(line))) throw new TypeError('accounts are elsewhere')
  return lines.map((line) => line.split(':'))
}
