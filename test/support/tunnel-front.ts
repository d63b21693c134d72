import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { KeyPairFiles } from '../../bench/tunnel/pairs-certificates.ts'

/** Where CONNECT requests go: a UNIX socket, or a port with mutual TLS. */
export type ConnectDoor =
  | { readonly uds: string }
  | {
      readonly host: string
      readonly port: number
      readonly ca: string
      readonly client: KeyPairFiles
    }

/** A dial that the front end has refused. */
export class DialRefused extends Error {
  readonly status: number
  readonly text: string

  constructor(status: number, text: string) {
    super(`${status}: ${text}`)
    this.status = status
    this.text = text
  }
}

async function openDoor(door: ConnectDoor): Promise<Socket> {
  if ('uds' in door) {
    const socket = connect({ path: door.uds, allowHalfOpen: true })
    await once(socket, 'connect')
    return socket
  }
  const [ca, cert, key] = await Promise.all(
    [door.ca, door.client.cert, door.client.key].map((path) => readFile(path, 'utf8')),
  )
  const socket = connectTls({ host: door.host, port: door.port, ca, cert, key })
  await once(socket, 'secureConnect')
  return socket
}

/** Dials a target by CONNECT; aborting `signal` before the answer leaves like a client that gave up. */
export async function dialByConnect(
  door: ConnectDoor,
  target: string,
  signal?: AbortSignal,
): Promise<Socket> {
  const opened = await openDoor(door)
  const asking = request({
    method: 'CONNECT',
    path: target,
    headers: { connection: 'close' },
    createConnection: () => opened,
    ...(signal && { signal }),
  })
  asking.end()
  const [response, socket, head] = (await once(asking, 'connect')) as [
    IncomingMessage,
    Socket,
    Buffer,
  ]
  socket.on('error', () => {}) // a test sees a cut by `close`
  if (head.length > 0) socket.unshift(head)
  if (response.statusCode === 200) return socket
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  throw new DialRefused(response.statusCode ?? 0, text)
}

/** Writes and waits for as many bytes as were written, or more if `length` says so. */
export async function exchange(
  socket: Socket,
  text: string,
  length = Buffer.byteLength(text),
): Promise<string> {
  socket.write(text)
  return readBytes(socket, length)
}

/** The next `length` bytes as text; fails when the connection ends before. */
export function readBytes(socket: Socket, length: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const take = (): void => {
      const bytes: unknown = socket.read(length)
      if (bytes instanceof Buffer && bytes.length === length) {
        stop()
        resolve(bytes.toString())
      }
    }
    const over = (): void => {
      stop()
      reject(new Error('the connection ended'))
    }
    const stop = (): void => {
      socket.off('readable', take).off('end', over).off('close', over)
    }
    socket.on('readable', take).on('end', over).on('close', over)
    if (socket.destroyed) over()
    else take()
  })
}
