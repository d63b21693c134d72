import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, connect, isIP, type Socket } from 'node:net'
import { rootCertificates } from 'node:tls'
import { Secret } from '../../core/index.ts'
import { authority, type ServerAddress, unbracketed } from './addresses.ts'
import { ClientConfigInvalid, ConnectionFailed } from './errors.ts'

/** A proxy that opens connections for us. */
export interface Proxy {
  readonly kind: 'http' | 'https' | 'socks5'
  readonly host: string
  readonly port: number
  readonly credentials?: { readonly username: string; readonly password: Secret }
}

/** The environment variables that name proxies, as far as they are set. */
export type ProxyEnv = Readonly<Record<string, string | undefined>>

/** The proxy on the way to a server: the cluster's own goes before the environment's. */
export function chooseProxy(
  server: Pick<ServerAddress, 'host' | 'port' | 'tls'>,
  options: { readonly proxyUrl?: string; readonly env?: ProxyEnv },
): Proxy | undefined {
  if (options.proxyUrl !== undefined && options.proxyUrl !== '')
    return parseProxy(options.proxyUrl, 'proxy-url')
  const env = options.env ?? {}
  const name = server.tls ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const url = variable(env, name)
  if (url === undefined || !usesProxy(server, variable(env, 'NO_PROXY') ?? '')) return undefined
  return parseProxy(url.includes('://') ? url : `http://${url}`, name)
}

const variable = (env: ProxyEnv, name: string): string | undefined =>
  env[name] || env[name.toLowerCase()] || undefined

const ports = { http: 80, https: 443, socks5: 1080 }

/** The text may hold a password, so messages name only where it came from. */
function parseProxy(text: string, origin: string): Proxy {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const scheme = url?.protocol.slice(0, -1)
  const kind = scheme === 'socks5h' ? 'socks5' : scheme
  if (!url || url.hostname === '' || (kind !== 'http' && kind !== 'https' && kind !== 'socks5'))
    throw new ClientConfigInvalid(`${origin} must be an http, https or socks5 URL`)
  const { username, password } = url
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part)
    } catch {
      throw new ClientConfigInvalid(`${origin} has a malformed user name or password`)
    }
  }
  return {
    kind,
    host: unbracketed(url.hostname),
    port: url.port === '' ? ports[kind] : Number(url.port),
    ...(username !== '' && {
      credentials: { username: decoded(username), password: new Secret(decoded(password)) },
    }),
  }
}

/** Go's rules, which kubectl follows: this machine itself is never reached through a proxy. */
function usesProxy({ host, port }: Pick<ServerAddress, 'host' | 'port'>, noProxy: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || isLoopback(name)) return false
  return !noProxy
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && covers(entry, name, port))
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

const family = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

const isLoopback = (host: string): boolean => isIP(host) !== 0 && loopback.check(host, family(host))

function covers(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true
  if (entry.includes('/')) return coversSubnet(entry, host)
  const [, name = entry, only] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry) ?? []
  if (only !== undefined && Number(only) !== port) return false
  const wanted = unbracketed(name).replace(/^\*(?=\.)/, '')
  if (isIP(wanted) !== 0) return wanted === host
  if (isIP(host) !== 0) return false
  return wanted.startsWith('.')
    ? host.endsWith(wanted)
    : host === wanted || host.endsWith(`.${wanted}`)
}

function coversSubnet(entry: string, host: string): boolean {
  const [address = '', bits = ''] = entry.split('/')
  const most = isIP(address) === 6 ? 128 : 32
  if (isIP(address) === 0 || isIP(host) === 0 || !/^\d+$/.test(bits) || Number(bits) > most)
    return false
  const subnet = new BlockList()
  subnet.addSubnet(address, Number(bits), family(address))
  return subnet.check(host, family(host))
}

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
async function socks5Handshake(
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

/** A connection to a server through a proxy, which learns neither credential nor certificate of ours. */
export async function tunnelThrough(
  proxy: Proxy,
  target: Pick<ServerAddress, 'host' | 'port'>,
  options: { readonly caPem?: string | undefined; readonly signal: AbortSignal },
): Promise<Socket> {
  if (proxy.kind !== 'socks5') return connectMethod(proxy, target, options)
  const socket = connect({ host: proxy.host, port: proxy.port, signal: options.signal })
  try {
    await once(socket, 'connect', { signal: options.signal })
    await socks5Handshake(socket, target, proxy.credentials)
    return socket
  } catch (error) {
    socket.destroy()
    throw throughProxy(proxy, error)
  }
}

async function connectMethod(
  proxy: Proxy,
  target: Pick<ServerAddress, 'host' | 'port'>,
  { caPem, signal }: { readonly caPem?: string | undefined; readonly signal: AbortSignal },
): Promise<Socket> {
  const name = authority(target)
  const open = proxy.kind === 'https' ? httpsRequest : httpRequest
  const request = open({
    host: proxy.host,
    port: proxy.port,
    method: 'CONNECT',
    path: name,
    agent: false,
    signal,
    headers: { host: name, ...proxyAuthorization(proxy) },
    ...(proxy.kind === 'https' && {
      rejectUnauthorized: true,
      // Node.js would verify the name in the Host header, which is that of the target.
      servername: isIP(proxy.host) === 0 ? proxy.host : '',
      // As kubectl: the authorities of the cluster may vouch for its proxy as well.
      ...(caPem !== undefined && { ca: [...rootCertificates, caPem] }),
    }),
  })
  const answer = once(request, 'connect') as Promise<[IncomingMessage, Socket, Buffer]>
  request.end()
  try {
    const [response, socket, head] = await answer
    if (response.statusCode !== 200) {
      socket.destroy()
      throw new ConnectionFailed(`it answered CONNECT with status ${response.statusCode ?? 0}`)
    }
    if (head.length > 0) socket.unshift(head)
    return socket
  } catch (error) {
    throw throughProxy(proxy, error)
  }
}

function proxyAuthorization({ credentials }: Proxy): Record<string, string> {
  if (!credentials) return {}
  const pair = `${credentials.username}:${credentials.password.reveal()}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}

function throughProxy(proxy: Proxy, cause: unknown): ConnectionFailed {
  const words = cause instanceof Error ? cause.message : 'unknown'
  const name = `${proxy.kind}://${authority(proxy)}`
  return new ConnectionFailed(`the proxy ${name} does not connect us: ${words}`, { cause })
}
