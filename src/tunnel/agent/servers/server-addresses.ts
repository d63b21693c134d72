import { isIP } from 'node:net'
import type { Logger } from '../../../core/index.ts'
import { showHostPort } from '../../addresses/index.ts'
import { parseServerHost } from '../options/index.ts'
import type { Resolve } from '../targets/dial-target.ts'

/** One address at which a tunnel server may be. */
export interface ServerAddress {
  /** An IP address, or a name that could not be resolved here. */
  readonly host: string
  readonly port: number
  /** The name the server must prove to have; absent when it was given as an address. */
  readonly name?: string
}

/** Which servers were given. */
export interface GivenServers {
  readonly hosts: readonly string[]
  readonly port: number
  /** Proven by every server, whatever its host. */
  readonly name?: string | undefined
}

/** All addresses of all servers that were given, each once; names are resolved anew. */
export async function serverAddresses(
  given: GivenServers,
  resolve: Resolve,
  log: Logger,
): Promise<ServerAddress[]> {
  const found = new Map<string, ServerAddress>()
  for (const text of given.hosts) {
    const { host, port = given.port } = parseServerHost(text) ?? { host: text }
    const name = given.name ?? (isIP(host) === 0 ? host : undefined)
    for (const address of await addressesOf(host, resolve, log)) {
      const server = { host: address, port, ...(name !== undefined && { name }) }
      const key = `${showHostPort(server)} ${name ?? ''}`
      if (!found.has(key)) found.set(key, server)
    }
  }
  return [...found.values()]
}

async function addressesOf(
  host: string,
  resolve: Resolve,
  log: Logger,
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  try {
    return await resolve(host)
  } catch (err) {
    log.warn({ err, host }, 'cannot resolve the name of a tunnel server')
    return []
  }
}
