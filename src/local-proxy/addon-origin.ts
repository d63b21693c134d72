import { isIPv6 } from 'node:net'
import { rawHeaderValues } from '../http/index.ts'
import { isLabel, type ServiceId } from './proxied-path.ts'
import { malformed, Refusal } from './refusal.ts'
import { schemeOfPortLabel } from './services.ts'

/** The host that a request was sent to. */
export interface HostName {
  /** In lower case and without the port; an IPv6 address is in brackets. */
  readonly name: string
  /** Name and port as the browser's address bar has them. */
  readonly authority: string
}

const shape = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,253}))(?::(\d{1,5}))?$/

/** Reads the one Host header that a request must have. */
export function readHost(rawHeaders: readonly string[]): HostName {
  const [value, ...others] = rawHeaderValues(rawHeaders, 'host')
  if (value === undefined || value === '') throw malformed('the request names no host')
  if (others.length > 0) throw malformed('the request names two hosts')
  const found = shape.exec(value.toLowerCase())
  const name = found?.[1]
  const port = found?.[2]
  if (name === undefined || !isSound(name) || Number(port ?? 1) > 65_535)
    throw malformed(`${JSON.stringify(value)} is no host`)
  return { name, authority: port === undefined || port === '80' ? name : `${name}:${port}` }
}

const isSound = (name: string): boolean => !name.startsWith('[') || isIPv6(name.slice(1, -1))

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether a host is this machine, as a browser on it would name it. */
export const isLoopback = (host: HostName): boolean => loopbackNames.has(host.name)

/** The port part of an authority with its colon, or nothing. */
export const portSuffix = (host: HostName): string => host.authority.slice(host.name.length)

const suffix = '.localhost'

/**
 * The service whose own origin a host is: `service.namespace.localhost`, with a port in front of it,
 * and a scheme in front of that.
 */
export function readAddonHost({ name }: HostName): ServiceId | undefined {
  if (!name.endsWith(suffix)) return undefined
  const labels = name.slice(0, -suffix.length).split('.')
  const [namespace = '', service = '', port, scheme, ...more] = labels.reverse()
  const isSound = labels.length >= 2 && more.length === 0 && labels.every(isLabel)
  if (!isSound || (scheme !== undefined && !isScheme(scheme)))
    throw new Refusal(
      404,
      `${name} is no address of an add-on: it must be SERVICE.NAMESPACE${suffix}, or PORT.SERVICE.NAMESPACE${suffix}`,
    )
  if (port === undefined) return { namespace, name: service }
  const chosen = isScheme(scheme) ? scheme : schemeOfPortLabel(port)
  return { namespace, name: service, port, ...(chosen && { scheme: chosen }) }
}

const isScheme = (text: string | undefined): text is 'http' | 'https' =>
  text === 'http' || text === 'https'

/** The host of a service's own origin, of which `readAddonHost` makes the same service. */
export function addonHostOf({ namespace, name, port, scheme }: ServiceId): string | undefined {
  const base = `${name}.${namespace}${suffix}`
  // The port without a name cannot be told together with a scheme.
  if (port === undefined) return scheme === undefined ? base : undefined
  if (!isLabel(port)) return undefined
  return schemeOfPortLabel(port) === scheme
    ? `${port}.${base}`
    : `${scheme ?? 'http'}.${port}.${base}`
}
