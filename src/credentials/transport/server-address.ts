import { ClientConfigInvalid } from './transport-errors.ts'

/** Where an API server listens. */
export interface ServerAddress {
  /** Scheme, host and port, as a URL writes them. */
  readonly origin: string
  /** As a socket takes it: IPv6 addresses without brackets. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** Goes before the path of every request; never ends in a slash. */
  readonly basePath: string
}

/** The addresses of one cluster, all of one scheme and one path. */
export function parseServers(
  servers: readonly string[],
): readonly [ServerAddress, ...ServerAddress[]] {
  const [first, ...others] = servers.map(parseServer)
  if (!first) throw new ClientConfigInvalid('a cluster needs at least one server address')
  for (const other of others)
    if (other.tls !== first.tls || other.basePath !== first.basePath)
      throw new ClientConfigInvalid(
        `the addresses of a cluster must have one scheme and one path: ${first.origin}${first.basePath} and ${other.origin}${other.basePath} differ`,
      )
  return [first, ...others]
}

function parseServer(text: string): ServerAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new ClientConfigInvalid('the address of the API server must begin with https://')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new ClientConfigInvalid(
      'the address of the API server must have no user, password, query or fragment',
    )
  const tls = url.protocol === 'https:'
  return {
    origin: url.origin,
    host: unbracketed(url.hostname),
    port: url.port === '' ? (tls ? 443 : 80) : Number(url.port),
    tls,
    basePath: url.pathname.replace(/\/+$/, ''),
  }
}

/** A URL writes IPv6 addresses in brackets, a socket does not. */
export const unbracketed = (host: string): string => host.replace(/^\[|\]$/g, '')

/** Host and port as the line of a request writes them. */
export const authority = ({ host, port }: Pick<ServerAddress, 'host' | 'port'>): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
