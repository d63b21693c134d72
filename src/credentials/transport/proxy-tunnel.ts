import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { rootCertificates } from 'node:tls'
import type { Proxy } from './proxy-choice.ts'
import { authority, type ServerAddress } from './server-address.ts'
import { socks5Handshake } from './socks5.ts'
import { ConnectionFailed } from './transport-errors.ts'

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
    // As kubectl: the authorities of the cluster may vouch for its proxy as well.
    ...(proxy.kind === 'https' && caPem !== undefined && { ca: [...rootCertificates, caPem] }),
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
