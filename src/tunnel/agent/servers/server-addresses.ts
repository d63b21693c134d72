import { isIP } from 'node:net'
import type { Logger } from '../../../core/index.ts'
import { chooseProxy, type Proxy, type ProxyEnv } from '../../../credentials/proxy/index.ts'
import { showHostPort } from '../../addresses.ts'
import { parseServerHost } from '../options/index.ts'
import type { Resolve } from '../targets/dial-target.ts'

/** One address at which a tunnel server may be. */
export interface ServerAddress {
  /** An IP address, or a name that a proxy resolves. */
  readonly host: string
  readonly port: number
  /** The name the server must prove to have; absent when it was given as an address. */
  readonly name?: string
  /** The proxy on the way to it. */
  readonly proxy?: Proxy
}

/** Which servers were given. */
export interface GivenServers {
  readonly hosts: readonly string[]
  readonly port: number
  /** Proven by every server, whatever its host. */
  readonly name?: string | undefined
  /** HTTPS_PROXY and NO_PROXY are read from it, as Go's agents do. */
  readonly env: ProxyEnv
}

/** All addresses of all servers that were given, each once; names are resolved anew. */
export async function serverAddresses(
  given: GivenServers,
  resolve: Resolve,
  log: Logger,
): Promise<ServerAddress[]> {
  const found = new Map<string, ServerAddress>()
  const all = await Promise.all(given.hosts.map((host) => addressesOf(host, given, resolve, log)))
  for (const server of all.flat()) {
    const key = `${showHostPort(server)} ${server.name ?? ''}`
    if (!found.has(key)) found.set(key, server)
  }
  return [...found.values()]
}

async function addressesOf(
  text: string,
  given: GivenServers,
  resolve: Resolve,
  log: Logger,
): Promise<ServerAddress[]> {
  const { host, port = given.port } = parseServerHost(text) ?? { host: text }
  const name = given.name ?? (isIP(host) === 0 ? host : undefined)
  const server = { host, port, ...(name !== undefined && { name }) }
  try {
    const proxy = chooseProxy({ host, port, tls: true }, { env: given.env })
    if (proxy) return [{ ...server, proxy }]
    if (isIP(host) !== 0) return [server]
    return (await resolve(host)).map((address) => ({ ...server, host: address }))
  } catch (err) {
    log.warn({ err, host }, 'cannot find the way to a tunnel server')
    return []
  }
}
