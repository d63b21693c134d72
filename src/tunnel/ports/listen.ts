import type { Server } from 'node:net'
import { CommandFailed, systemErrorCode } from '../../core/index.ts'
import { showHostPort } from '../addresses.ts'
import { nameSocketFile, removeSocketFile, unnamedSocketFile } from './socket-file.ts'

/** A TCP port to listen on. */
export interface TcpPlace {
  /** Empty: all addresses. */
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
}

/** A unix socket to listen on. */
export interface UnixPlace {
  readonly path: string
  /** Whether a socket that is there already is removed. */
  readonly replace: boolean
}

/** Opens a listener; `what` names its purpose in errors. Returns where it is, to be shown. */
export function listen(server: Server, place: TcpPlace | UnixPlace, what: string): Promise<string> {
  return 'path' in place ? listenOnUnix(server, place, what) : listenOnTcp(server, place, what)
}

/** Stops accepting; connections that are open stay. */
export function stopListening(server: Server): Promise<void> {
  removeSocketFile(server)
  return new Promise((resolve) => {
    if (!server.listening) resolve()
    else server.close(() => resolve())
  })
}

/** The port that a listener has. */
export function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

const showPlace = (host: string, port: number): string =>
  showHostPort({ host: host === '' ? '*' : host, port })

async function listenOnTcp(server: Server, place: TcpPlace, what: string): Promise<string> {
  const { host, port } = place
  try {
    await opened(server, { port, ...(host !== '' && { host }) })
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    const [name, why, hint] = explanations[code] ?? ['LISTEN_FAILED', code, undefined]
    throw new CommandFailed(name, `cannot listen on ${showPlace(host, port)} for ${what}: ${why}`, {
      ...(hint !== undefined && { hint }),
      cause,
    })
  }
  return showPlace(host, portOf(server))
}

const noAddress = [
  'ADDRESS_NOT_AVAILABLE',
  'this machine has no such address',
  'choose an address of this machine',
] as const

const explanations: Readonly<Record<string, readonly [string, string, string]>> = {
  EADDRINUSE: [
    'PORT_IN_USE',
    'the port is in use',
    'stop the program that uses it, or choose another port',
  ],
  EACCES: [
    'PORT_NOT_PERMITTED',
    'this user may not use the port',
    'choose a port above 1023, or grant the right to bind lower ones',
  ],
  EADDRNOTAVAIL: noAddress,
  ENOTFOUND: noAddress,
}

async function listenOnUnix(server: Server, place: UnixPlace, what: string): Promise<string> {
  const { path } = place
  try {
    await opened(server, { path: unnamedSocketFile(path) })
    await nameSocketFile(server, place)
  } catch (cause) {
    server.close()
    if (cause instanceof CommandFailed) throw cause
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('LISTEN_FAILED', `cannot listen on ${path} for ${what}: ${code}`, {
      hint: 'name a path in a directory that exists and that this user may write, not too long',
      cause,
    })
  }
  return path
}

function opened(
  server: Server,
  where: { readonly port: number; readonly host?: string } | { readonly path: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
