import { hash } from 'node:crypto'
import { type ProxyTarget, proxyId } from '../core/index.ts'

/**
 * Hosts of add-ons at the local proxy. A Service and one of its ports have exactly one DNS label below `localhost`, so
 * that no two of them share a parent domain for which a page could set a cookie:
 *
 *     SERVICE--NAMESPACE                    the web port of the Service
 *     PORT--SERVICE--NAMESPACE              http, or https where the port's name or number stands for it
 *     SCHEME--PORT--SERVICE--NAMESPACE      another scheme; PORT 0 is the port without a name
 *     SERVICE-DIGEST                        what does not fit into 63 characters or cannot be read back exactly
 */
const suffix = '.localhost'
const separator = '--'
const unnamedPort = '0'
const maxLabelLength = 63
const digestLength = 40

// A part has no two hyphens in a row, so that labels can be cut at one place only. Browsers decode `xn--`.
const part = '([a-z0-9]+(?:-[a-z0-9]+)*)'
const readable = new RegExp(`^(?!xn--)(?:(?:(https?)--)?${part}--)?${part}--${part}$`)
const hashed = new RegExp(`^(?:[a-z0-9]+-)+[0-9a-f]{${digestLength}}$`)

/** The host of a Service's own origin, without a port. */
export function addonHost(target: ProxyTarget): string {
  const label = readableLabel(target)
  // Reading it back is the proof that no other Service has the same label.
  const found = label.length <= maxLabelLength ? readLabel(label) : undefined
  return (found && isSame(found, target) ? label : hashedLabel(target)) + suffix
}

/** The Service of a host that `addonHost` returns; undefined for a hashed one and for every other host. */
export function readAddonHost(host: string): ProxyTarget | undefined {
  if (!host.endsWith(suffix)) return undefined
  const found = readLabel(host.slice(0, -suffix.length))
  return found && addonHost(found) === host ? found : undefined
}

/** Whether a host has the form for Services whose names do not fit; only a search among Services finds which one. */
export const isHashedAddonHost = (host: string): boolean =>
  host.endsWith(suffix) && hashed.test(host.slice(0, -suffix.length))

/** The part of a hashed host that comes from the Service's name. */
export const hashedHostStem = (name: string): string =>
  name.replaceAll(/-+/g, '-').slice(0, maxLabelLength - digestLength - 1)

const tlsNumbers = new Set(['443', '8443'])

/** The scheme that the name or number of a port stands for; empty means http. */
export const schemeOfPortLabel = (port: string): '' | 'https' =>
  tlsNumbers.has(port) || /(?:^|-)(?:https|tls)(?:-|$)/.test(port) ? 'https' : ''

function readableLabel({ namespace, name, port, scheme }: ProxyTarget): string {
  const base = [name, namespace]
  if (scheme !== schemeOfPortLabel(port)) base.unshift(scheme, port || unnamedPort)
  else if (port !== '') base.unshift(port)
  return base.join(separator)
}

function readLabel(text: string): ProxyTarget | undefined {
  const found = readable.exec(text)
  if (!found) return undefined
  const [, scheme, port = '', name = '', namespace = ''] = found
  const base = { resource: 'services', namespace, name } as const
  if (scheme === 'http' || scheme === 'https')
    return { ...base, port: port === unnamedPort ? '' : port, scheme }
  return port === unnamedPort ? undefined : { ...base, port, scheme: schemeOfPortLabel(port) }
}

const isSame = (a: ProxyTarget, b: ProxyTarget): boolean =>
  a.resource === b.resource &&
  a.namespace === b.namespace &&
  a.name === b.name &&
  a.port === b.port &&
  a.scheme === b.scheme

function hashedLabel(target: ProxyTarget): string {
  const { resource, namespace, name } = target
  const digest = hash('sha256', `${resource}/${namespace}/${proxyId(target)}`, 'hex')
  return `${hashedHostStem(name)}-${digest.slice(0, digestLength)}`.replaceAll(/-+/g, '-')
}
