import type { Clock } from '../core/index.ts'
import type { ApiReader } from './api-reader.ts'
import type { ServiceId } from './proxied-path.ts'
import { defaultPort, readPorts, withPort } from './service-ports.ts'

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
