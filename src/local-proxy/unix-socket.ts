import { once } from 'node:events'
import { chmod, lstat, mkdtemp, rename, rm, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { CommandFailed, systemErrorCode } from '../core/index.ts'

/** Makes a server listen on a unix socket that only its owner may use; a stale one is replaced. */
export async function listenOnUnixSocket(server: Server, path: string): Promise<void> {
  await refuseOccupied(path)
  try {
    await listenPrivately(server, path)
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('LISTEN_FAILED', `cannot listen on ${path}: ${code}`, {
      hint: 'choose a path of at most 90 characters in a directory that you may write to',
      cause,
    })
  }
}

/** Nobody can connect before the rights are right: until then the socket lies in a closed directory. */
async function listenPrivately(server: Server, path: string): Promise<void> {
  const hidden = await mkdtemp(join(dirname(path), '.s-'))
  try {
    const socket = join(hidden, 's')
    server.listen(socket)
    await Promise.race([
      once(server, 'listening'),
      once(server, 'error').then(([error]) => Promise.reject(error)),
    ])
    await chmod(socket, 0o600)
    await rename(socket, path)
  } catch (error) {
    server.close()
    throw error
  } finally {
    await rm(hidden, { recursive: true, force: true })
  }
}

/** Takes the socket away again. */
export async function removeUnixSocket(path: string): Promise<void> {
  await unlink(path).catch(() => {}) // somebody else may have been quicker
}

async function refuseOccupied(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (!found) return
  if (!found.isSocket())
    throw new CommandFailed('LISTEN_FAILED', `cannot listen on ${path}: it is no socket`, {
      hint: 'choose a path at which there is nothing yet',
    })
  if (await answers(path))
    throw new CommandFailed('PORT_IN_USE', `cannot listen on ${path}: a program answers there`, {
      hint: 'stop the program that uses it, or choose another path',
    })
}

async function answers(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
