import { isIPv6 } from 'node:net'
import type { ProxyTarget } from '../core/index.ts'
import { addonHost, isHashedAddonHost, rawHeaderValues, readAddonHost } from '../http/index.ts'
import { malformed, Refusal } from './refusal.ts'

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

/** An add-on's own origin, as a request's host names it. */
export interface AddonOrigin {
  readonly host: HostName
  /** Absent for a hashed host: it is found among the Services of the cluster. */
  readonly service?: ProxyTarget
}

/** Reads the host of an add-on's own origin; undefined for hosts that are not below `localhost`. */
export function readAddonOrigin(host: HostName): AddonOrigin | undefined {
  if (!host.name.endsWith('.localhost')) return undefined
  const service = readAddonHost(host.name)
  if (service) return { host, service }
  if (isHashedAddonHost(host.name)) return { host }
  // Earlier each part was a label of its own, and add-ons of a namespace shared its domain.
  const dotted = readAddonHost(host.name.replaceAll(/\.(?!localhost$)/g, '--'))
  const address = dotted ? addonHost(dotted) : 'SERVICE--NAMESPACE.localhost'
  throw new Refusal(
    404,
    `no add-on has the host ${host.name}: use http://${address}${portSuffix(host)}/`,
  )
}
