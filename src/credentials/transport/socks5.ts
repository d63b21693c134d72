import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import type { Proxy } from './proxy-choice.ts'
import type { ServerAddress } from './server-address.ts'
import { ConnectionFailed } from './transport-errors.ts'

const version = 5
const methods = { none: 0, password: 2 } as const
const passwordVersion = 1
const connectCommand = 1
const addressTypes = { ipv4: 1, name: 3, ipv6: 4 } as const

const refusals: Readonly<Record<number, string>> = {
  1: 'general failure',
  2: 'not allowed by its rules',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'time to live expired',
  7: 'command not supported',
  8: 'address type not supported',
}

/** Asks a SOCKS5 proxy (RFC 1928, RFC 1929) at the other end of `socket` for a connection; it looks up names. */
export async function socks5Handshake(
  socket: Socket,
  target: Pick<ServerAddress, 'host' | 'port'>,
  credentials: Proxy['credentials'],
): Promise<void> {
  const offered = credentials ? [methods.none, methods.password] : [methods.none]
  socket.write(Buffer.from([version, offered.length, ...offered]))
  const [, method] = await take(socket, 2)
  if (method === methods.password && credentials) await logIn(socket, credentials)
  else if (method !== methods.none) throw new ConnectionFailed('it accepts none of our log-ins')
  socket.write(Buffer.from([version, connectCommand, 0, ...destination(target)]))
  const [, reply = 1, , type] = await take(socket, 4)
  if (reply !== 0) throw new ConnectionFailed(refusals[reply] ?? `refusal ${reply}`)
  const [length] =
    type === addressTypes.name ? await take(socket, 1) : [type === addressTypes.ipv6 ? 16 : 4]
  await take(socket, (length ?? 0) + 2)
}

async function logIn(
  socket: Socket,
  { username, password }: NonNullable<Proxy['credentials']>,
): Promise<void> {
  const user = counted(username)
  const pass = counted(password.reveal())
  socket.write(Buffer.concat([Buffer.from([passwordVersion]), user, pass]))
  const [, status] = await take(socket, 2)
  if (status !== 0) throw new ConnectionFailed('it refuses our user name and password')
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > 255) throw new ConnectionFailed('a name or password is too long for SOCKS5')
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

function destination({ host, port }: Pick<ServerAddress, 'host' | 'port'>): Buffer {
  const end = Buffer.from([port >> 8, port & 0xff])
  if (isIP(host) === 4)
    return Buffer.concat([Buffer.from([addressTypes.ipv4, ...host.split('.').map(Number)]), end])
  if (isIP(host) === 6)
    return Buffer.concat([Buffer.from([addressTypes.ipv6]), ipv6Bytes(host), end])
  return Buffer.concat([Buffer.from([addressTypes.name]), counted(host), end])
}

function ipv6Bytes(host: string): Buffer {
  // A URL writes every IPv6 address in hexadecimal groups, also those that embed an IPv4 address.
  const [head = '', tail] = new URL(`http://[${host}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const before = groups(head)
  const after = groups(tail ?? '')
  const gap = Array.from({ length: 8 - before.length - after.length }, () => '0')
  const bytes = Buffer.alloc(16)
  for (const [index, group] of [...before, ...gap, ...after].entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2)
  return bytes
}

/** Exactly so many bytes; what comes after them stays in the socket for its next reader. */
async function take(socket: Socket, size: number): Promise<Buffer> {
  for (;;) {
    const bytes: unknown = socket.read(size)
    if (Buffer.isBuffer(bytes) && bytes.length === size) return bytes
    if (bytes !== null || socket.readableEnded || socket.destroyed)
      throw new ConnectionFailed('it closed the connection')
    await readableOrEnded(socket)
  }
}

async function readableOrEnded(socket: Socket): Promise<void> {
  const done = new AbortController()
  const { signal } = done
  try {
    await Promise.race([once(socket, 'readable', { signal }), once(socket, 'end', { signal })])
  } finally {
    done.abort()
  }
}
