import { maxOriginLength, maxOriginsPerUser, maxOriginUsers, provenOriginMs } from './limits.ts'

/** The origins at which browsers reach this server, by user: no user can prove one for another. */
export class ProvenOrigins {
  /** Monotonic times by origin, by user; the user who was seen last comes last. */
  readonly #users = new Map<string, Map<string, number>>()

  prove(username: string, origin: string, now: number): void {
    if (origin === 'null' || origin.length > maxOriginLength) return
    const origins = this.#users.get(username) ?? new Map<string, number>()
    this.#users.delete(username)
    this.#users.set(username, origins)
    origins.delete(origin)
    origins.set(origin, now)
    if (origins.size > maxOriginsPerUser) dropFirst(origins)
    if (this.#users.size > maxOriginUsers) dropFirst(this.#users)
  }

  has(username: string, origin: string, now: number): boolean {
    const provenAt = this.#users.get(username)?.get(origin)
    return provenAt !== undefined && now - provenAt < provenOriginMs
  }
}

function dropFirst(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key)
    return
  }
}
