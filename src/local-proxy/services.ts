import type { Clock, ProxyTarget } from '../core/index.ts'
import { addonHost, hashedHostStem, isHashedAddonHost, schemeOfPortLabel } from '../http/index.ts'
import type { ApiReader } from './api-reader.ts'

/** What of a Service's port matters to a proxy. */
export interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly protocol?: string
  readonly appProtocol?: string
}

/** The scheme of a port: what it says itself, or what its name or number stands for. */
export function schemeOfPort({ appProtocol, name, port }: ServicePort): '' | 'https' {
  const told = appProtocol?.toLowerCase()
  if (told === 'https' || told === 'kubernetes.io/wss') return 'https'
  if (told === 'http' || told === 'kubernetes.io/ws') return ''
  if (/(?:^|-)http(?:-|$)/.test(name ?? '')) return ''
  return schemeOfPortLabel(name ?? '') || schemeOfPortLabel(String(port))
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

/** A Service as the API server's proxy names it; the port without a name is named by nothing. */
export const serviceTarget = (
  namespace: string,
  name: string,
  port?: ServicePort,
): ProxyTarget => ({
  resource: 'services',
  namespace,
  name,
  port: port?.name ?? '',
  scheme: port ? schemeOfPort(port) : '',
})

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

/** A text in a field of an object of unknown shape; empty if there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = path.reduce<unknown>(field, value)
  return typeof found === 'string' ? found : ''
}

/** Which are searched one by one where the user may not list them all at once. */
export const maxNamespaces = 30

/** The objects of a list; undefined if the user may not list it. */
export async function listItems(
  api: ApiReader,
  path: string,
  signal: AbortSignal,
): Promise<readonly unknown[] | undefined> {
  const list = field(await api.get(path, signal), 'items')
  return Array.isArray(list) ? list : undefined
}

/** The Services that the user may list: all, or those of the namespaces that are known. */
export async function listServices(
  api: ApiReader,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const all = await listItems(api, '/api/v1/services?limit=1000', signal)
  if (all) return all
  const searched = [...new Set(namespaces)].slice(0, maxNamespaces)
  const lists = await Promise.all(
    searched.map((name) => listItems(api, `/api/v1/namespaces/${name}/services?limit=500`, signal)),
  )
  return lists.flatMap((list) => list ?? [])
}

const lifetimeMs = 30_000
const maxEntries = 1_000
const timeoutMs = 10_000

interface Entry {
  readonly until: number
  /** Resolves with nothing if there is no such service, or the user may not read it. */
  readonly found: Promise<ProxyTarget | undefined>
}

/** Finds what the address of an add-on leaves open: its port, or behind a hashed host the Service itself. */
export class ServiceLookup {
  readonly #api: ApiReader
  readonly #namespace: string
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  /** Services behind hashed hosts that clients were redirected to. */
  readonly #hashed = new Map<string, ProxyTarget>()

  constructor(api: ApiReader, namespace: string, clock: Clock) {
    this.#api = api
    this.#namespace = namespace
    this.#clock = clock
  }

  /** The host of a Service's own origin; a hashed one is found again, whatever the user may list. */
  hostOf(service: ProxyTarget): string {
    const host = addonHost(service)
    if (!isHashedAddonHost(host)) return host
    if (this.#hashed.size >= maxEntries) this.#hashed.clear()
    this.#hashed.set(host, service)
    return host
  }

  /** The Service of a hashed host; undefined if the user may list none that has it. */
  async find(host: string): Promise<ProxyTarget | undefined> {
    return (
      this.#hashed.get(host) ??
      this.#cached(host, async (signal) => {
        const services = await listServices(this.#api, [this.#namespace], signal)
        return services.flatMap(targetsOf).find((target) => isAt(target, host))
      })
    )
  }

  /** The Service with its port and scheme; as it was if it has one of them, or the user may not read it. */
  async complete(service: ProxyTarget): Promise<ProxyTarget> {
    if (service.port !== '' || service.scheme !== '') return service
    const { namespace, name } = service
    const path = `/api/v1/namespaces/${namespace}/services/${name}`
    const found = await this.#cached(path, async (signal) => {
      const port = defaultPort(readPorts(await this.#api.get(path, signal)))
      return port && serviceTarget(namespace, name, port)
    })
    return found ?? service
  }

  /** One request for all who wait; it must not end with the client that happened to be first. */
  async #cached(
    key: string,
    search: (signal: AbortSignal) => Promise<ProxyTarget | undefined>,
  ): Promise<ProxyTarget | undefined> {
    const now = this.#clock.monotonic()
    const known = this.#entries.get(key)
    if (known && known.until > now) return known.found
    if (this.#entries.size >= maxEntries) this.#entries.clear()
    const found = search(AbortSignal.timeout(timeoutMs))
    this.#entries.set(key, { until: now + lifetimeMs, found })
    // What failed or is missing may be there in a moment.
    const forget = (): void => void this.#entries.delete(key)
    found.then((target) => target ?? forget(), forget)
    return found
  }
}

/** Every form in which a Service object and its ports can be named. */
function targetsOf(service: unknown): ProxyTarget[] {
  const base = serviceTarget(
    textAt(service, 'metadata', 'namespace'),
    textAt(service, 'metadata', 'name'),
  )
  const ports = readPorts(service).flatMap(({ name, port }) => [name ?? '', String(port)])
  return ['', ...ports].flatMap((port) =>
    (['', 'http', 'https'] as const).map((scheme) => ({ ...base, port, scheme })),
  )
}

/** The stem spares a digest for nearly every Service. */
const isAt = (target: ProxyTarget, host: string): boolean =>
  host.startsWith(hashedHostStem(target.name)) && addonHost(target) === host
