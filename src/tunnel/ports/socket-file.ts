import { randomBytes } from 'node:crypto'
import { type BigIntStats, lstatSync, unlinkSync } from 'node:fs'
import { chmod, lstat, rename } from 'node:fs/promises'
import type { Server } from 'node:net'
import { platform } from 'node:os'
import { dirname, join } from 'node:path'
import { CommandFailed, systemErrorCode } from '../../core/index.ts'

/** Nobody could connect to a longer one: what the kernel takes, without the byte that ends it. */
const longestPath = platform() === 'linux' ? 107 : 103

interface SocketFile {
  readonly path: string
  readonly stats: BigIntStats
}

/** The files of listeners, as each has made its own. */
const files = new WeakMap<Server, SocketFile>()

/**
 * Where a socket is bound before it gets its name. A listener that is bound at its name would take away whatever is
 * there when it ends, also the socket of the one that has taken its place.
 */
export const unnamedSocketFile = (path: string): string =>
  join(dirname(path), `.${randomBytes(3).toString('hex')}`)

/** Gives the socket of a listener its name, in the place of one that is there already. */
export async function nameSocketFile(
  server: Server,
  { path, replace }: { readonly path: string; readonly replace: boolean },
): Promise<void> {
  const bound = server.address()
  if (typeof bound !== 'string') throw new TypeError('the listener has no socket file')
  await mustBeFree(path, replace)
  // As upstream's umask has it: for the owner and the group.
  await chmod(bound, 0o770)
  await rename(bound, path)
  files.set(server, { path, stats: await lstat(path, { bigint: true }) })
}

/** Takes the socket of a listener away, unless it is another's by now. */
export function removeSocketFile(server: Server): void {
  const file = files.get(server)
  if (!file) return
  files.delete(server)
  const { path, stats } = file
  try {
    const found = lstatSync(path, { bigint: true })
    const isOurs = found.ino === stats.ino && found.birthtimeNs === stats.birthtimeNs
    if (isOurs) unlinkSync(path)
  } catch {
    // It is gone, or stays behind and is replaced by the next start.
  }
}

async function mustBeFree(path: string, replace: boolean): Promise<void> {
  if (Buffer.byteLength(path) > longestPath) {
    throw new CommandFailed('LISTEN_FAILED', `${path} is too long for the path of a socket`, {
      hint: `name a path of ${longestPath} bytes at most`,
    })
  }
  const found = await lstat(path).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  })
  if (!found) return
  if (!found.isSocket()) {
    throw new CommandFailed('SOCKET_PATH_TAKEN', `${path} is there already and is no socket`, {
      hint: 'choose another path, or remove the file yourself',
    })
  }
  if (replace) return
  throw new CommandFailed('SOCKET_PATH_TAKEN', `the socket ${path} is there already`, {
    hint: 'stop the program that uses it, or let it be replaced with --delete-existing-uds-file',
  })
}
