import { type HostPort, parseHostPort, showHostPort } from '../../addresses.ts'
import type { SniRoute } from '../options/index.ts'

/** Where agents may be connected to: these places exactly, and nowhere if there are none. */
export class AllowList {
  readonly #places = new Map<string, HostPort>()

  constructor(places: readonly string[]) {
    for (const place of places) {
      const [key, parsed] = [normal(place), parseHostPort(place)]
      if (key !== undefined && parsed) this.#places.set(key, parsed)
    }
  }

  /** The place to dial, if it is allowed: as it is listed, since another spelling may be resolved in another way. */
  find(address: string): HostPort | undefined {
    return this.#places.get(normal(address) ?? '')
  }
}

function normal(address: string): string | undefined {
  const parsed = parseHostPort(address)
  if (!parsed) return undefined
  // A name is the same with its final dot, an IPv6 address however its zeros are written.
  const host = parsed.host.includes(':') ? shortest(parsed.host) : parsed.host.replace(/\.$/, '')
  return showHostPort({ host, port: parsed.port })
}

const shortest = (ipv6: string): string =>
  ipv6.includes('%') ? ipv6 : new URL(`http://[${ipv6}]`).hostname.slice(1, -1)

/** Finds the target for a server name: an exact route first, then one for the whole domain. */
export class SniRoutes {
  readonly #targets: ReadonlyMap<string, HostPort>

  constructor(routes: readonly SniRoute[]) {
    this.#targets = new Map(routes.map(({ name, target }) => [name, target]))
  }

  get isEmpty(): boolean {
    return this.#targets.size === 0
  }

  find(serverName: string): HostPort | undefined {
    const name = serverName.replace(/\.$/, '')
    const dot = name.indexOf('.')
    return (
      this.#targets.get(name) ?? (dot < 0 ? undefined : this.#targets.get(`*${name.slice(dot)}`))
    )
  }
}
