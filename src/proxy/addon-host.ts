import type { HostName } from './host-header.ts'
import { isLabel, type ServiceId } from './proxied-path.ts'
import { Refusal } from './refusal.ts'
import { schemeOfPortLabel } from './service-ports.ts'

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
