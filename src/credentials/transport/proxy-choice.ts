import { BlockList, isIP } from 'node:net'
import { Secret } from '../../core/index.ts'
import { type ServerAddress, unbracketed } from './server-address.ts'
import { ClientConfigInvalid } from './transport-errors.ts'

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
  return {
    kind,
    host: unbracketed(url.hostname),
    port: url.port === '' ? ports[kind] : Number(url.port),
    ...(username !== '' && {
      credentials: {
        username: decodeURIComponent(username),
        password: new Secret(decodeURIComponent(password)),
      },
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
