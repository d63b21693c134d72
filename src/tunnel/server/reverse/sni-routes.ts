import type { HostPort } from '../../addresses/index.ts'
import type { SniRoute } from '../options/index.ts'

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
