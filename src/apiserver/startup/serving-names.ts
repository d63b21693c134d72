import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { ServerOptions } from '../options/options.ts'

/** Whether an address means all addresses of the machine. */
export const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::'

/** An address of this machine that is reachable from other machines, IPv4 first; loopback when there is none. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const reachable = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  const [first] = reachable.sort((a, b) => a.family.localeCompare(b.family))
  return first?.address ?? '127.0.0.1'
}

/** The address at which the members of the cluster reach this server. */
export function advertiseAddress(options: ServerOptions): string {
  if (options.advertiseAddress !== undefined) return options.advertiseAddress
  const [first = '127.0.0.1'] = options.bindAddress
  return isWildcard(first) ? ownAddress() : first
}

/** The address to listen on for tunnel agents; empty for all, of both families. */
export function tunnelAddress(options: ServerOptions): string {
  if (options.tunnelAgentBindAddress !== undefined) return options.tunnelAgentBindAddress
  const [first = '127.0.0.1'] = options.bindAddress
  return isWildcard(first) ? '' : first
}

/** Every name and address of the server, for its certificate. */
export function servingNames(options: ServerOptions, serviceAddress: string): string[] {
  const { tunnelAgentBindAddress: forAgents } = options
  const addresses = [
    ...options.bindAddress,
    ...(options.tunnel && forAgents !== undefined ? [forAgents] : []),
  ]
  const bound = addresses.filter((address) => !isWildcard(address))
  const everywhere = addresses.some(isWildcard)
  const own = everywhere
    ? Object.values(networkInterfaces())
        .flatMap((addresses) => addresses ?? [])
        .map(({ address }) => address.replace(/%.*$/, ''))
    : []
  return [
    ...new Set([
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
      'localhost',
      '127.0.0.1',
      '::1',
      ...bound,
      ...own,
      serviceAddress,
      advertiseAddress(options),
      ...(options.externalHostname === undefined ? [] : [options.externalHostname]),
      ...options.tlsSan,
    ]),
  ]
}

/** The URL for a host and port, with IPv6 in brackets. */
export const urlOf = (host: string, port: number): string => `https://${hostAndPort(host, port)}`

/** `host:port`, with IPv6 in brackets. */
export const hostAndPort = (host: string, port: number): string =>
  `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
