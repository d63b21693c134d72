import type { Clock } from '../core/index.ts'
import type { ApiReader } from './api-reader.ts'
import type { ServiceId } from './proxied-path.ts'

/** What of a Service's port matters to a proxy. */
export interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly protocol?: string
  readonly appProtocol?: string
}

const tlsNumbers = new Set(['443', '8443'])

/** The scheme that the name or number of a port stands for; nothing means http. */
export function schemeOfPortLabel(label: string): 'https' | undefined {
  const isTls = tlsNumbers.has(label) || /(?:^|-)(?:https|tls)(?:-|$)/.test(label)
  return isTls ? 'https' : undefined
}

/** The scheme of a port: what it says itself, or what its name or number stands for. */
export function schemeOfPort({ appProtocol, name, port }: ServicePort): 'https' | undefined {
  const told = appProtocol?.toLowerCase()
  if (told === 'https' || told === 'kubernetes.io/wss') return 'https'
  if (told === 'http' || told === 'kubernetes.io/ws') return undefined
  if (/(?:^|-)http(?:-|$)/.test(name ?? '')) return undefined
  return schemeOfPortLabel(name ?? '') ?? schemeOfPortLabel(String(port))
}

const webProtocols = new Set(['http', 'https', 'kubernetes.io/ws', 'kubernetes.io/wss'])
const webNames = /(?:^|-)(?:https?|web|ui|dashboard|console|metrics)(?:-|$)/
const webNumbers = new Set([80, 443, 3000, 5000, 8000, 8080, 8081, 8443, 8888, 9000, 9090])

/** Whether a browser can probably do something with a port. */
export function isWebPort({ name, port, protocol, appProtocol }: ServicePort): boolean {
  if (protocol !== undefined && protocol !== 'TCP') return false
  if (appProtocol !== undefined) return webProtocols.has(appProtocol.toLowerCase())
  return webNumbers.has(port) || webNames.test(name ?? '')
}

/** The port that an address without one means: the web port, or the only port there is. */
export function defaultPort(ports: readonly ServicePort[]): ServicePort | undefined {
  return ports.find(isWebPort) ?? ports[0]
}

/** A port of a service as the API server's proxy is told about it; the one without a name is told by nothing. */
export function withPort(service: ServiceId, port: ServicePort): ServiceId {
  const scheme = schemeOfPort(port)
  return { ...service, ...(port.name && { port: port.name }), ...(scheme && { scheme }) }
}

/** The ports of a Service object that somebody else has sent; what is malformed is left out. */
export function readPorts(service: unknown): ServicePort[] {
  const spec = field(service, 'spec')
  const ports = field(spec, 'ports')
  return Array.isArray(ports) ? ports.flatMap(readPort) : []
}

function readPort(entry: unknown): ServicePort[] {
  const port = field(entry, 'port')
  if (typeof port !== 'number') return []
  const text = (name: string): Record<string, string> => {
    const value = field(entry, name)
    return typeof value === 'string' ? { [name]: value } : {}
  }
  return [{ port, ...text('name'), ...text('protocol'), ...text('appProtocol') }]
}

/** A field of an object of unknown shape. */
export function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  const fields: Readonly<Record<string, unknown>> = { ...value }
  return fields[name]
}

const lifetimeMs = 30_000
const maxEntries = 1_000

interface Entry {
  readonly until: number
  /** Resolves with nothing if there is no such service, or the user may not read it. */
  readonly found: Promise<ServiceId | undefined>
}

/** Finds the port that the address of a service without one means. */
export class ServiceLookup {
  readonly #api: ApiReader
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()

  constructor(api: ApiReader, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** The service with its port and scheme; as it was if the user may not read it. */
  async complete(service: ServiceId): Promise<ServiceId> {
    if (service.port !== undefined) return service
    const key = `${service.namespace}/${service.name}`
    const now = this.#clock.monotonic()
    const known = this.#entries.get(key)
    if (known && known.until > now) return (await known.found) ?? service
    if (this.#entries.size >= maxEntries) this.#entries.clear()
    // One question for all who wait; it must not end with the request that happened to be first.
    const found = this.#ask(service)
    this.#entries.set(key, { until: now + lifetimeMs, found })
    try {
      const completed = await found
      if (completed) return completed
    } catch (error) {
      this.#entries.delete(key)
      throw error
    }
    // It may be there in a moment.
    this.#entries.delete(key)
    return service
  }

  async #ask({ namespace, name }: ServiceId): Promise<ServiceId | undefined> {
    const path = `/api/v1/namespaces/${namespace}/services/${name}`
    const object = await this.#api.get(path, AbortSignal.timeout(10_000))
    const port = defaultPort(readPorts(object))
    return port && withPort({ namespace, name }, port)
  }
}
