import type { Duplex } from 'node:stream'
import {
  authorizationOf,
  ClientConfigInvalid,
  type Connections,
  type Identity,
  pathBelow,
  type RequestHeaders,
  withIdentity,
} from '../transport/index.ts'
import { UndiciReplay } from './undici-replay.ts'

/** What a dispatcher of undici does; the handler's methods depend on the major. */
export interface UndiciDispatcher {
  dispatch(options: UndiciRequest, handler: object): boolean
  close(): Promise<void>
  destroy(): Promise<void>
}

/** What is used of the options of a dispatch. */
interface UndiciRequest {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly headers?: unknown
  readonly body?: unknown
}

type Connected = (error: Error | null, socket: Duplex | null) => void

/** What is used of the module undici. */
export interface UndiciModule {
  readonly Agent: new (options: {
    connect: (options: object, callback: Connected) => void
    pipelining: number
    connections: number
  }) => UndiciDispatcher
}

/**
 * A dispatcher of the caller's own undici 6 or 7, for its `fetch`, `request` and `stream`, or for the global `fetch`
 * of a Node that has the same major: each request proves the identity of the moment, and is replayed after a
 * 401 when its body is text, bytes or none.
 */
export function undiciDispatcher(undici: UndiciModule, connections: Connections): UndiciDispatcher {
  refuseUnknownMajor(undici)
  return new RotatingDispatcher(undici, connections)
}

/** The major cannot be asked for, but each has brought a name that those before lack. */
function refuseUnknownMajor(undici: object): void {
  if ('Dispatcher1Wrapper' in undici)
    throw new ClientConfigInvalid('undiciDispatcher works with undici 6 and 7; this one is newer')
  if (!('Agent' in undici) || typeof undici.Agent !== 'function')
    throw new ClientConfigInvalid('undiciDispatcher needs the module undici, version 6 or 7')
}

class RotatingDispatcher implements UndiciDispatcher {
  readonly #undici: UndiciModule
  readonly #connections: Connections
  readonly #pools = new Map<Identity['generation'], UndiciDispatcher>()

  constructor(undici: UndiciModule, connections: Connections) {
    this.#undici = undici
    this.#connections = connections
  }

  dispatch(options: UndiciRequest, handler: object): boolean {
    const replay = new UndiciReplay(this.#connections, handler)
    this.#send(options, replay).catch((error: unknown) => replay.fail(error))
    return true
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }

  async #send(options: UndiciRequest, replay: UndiciReplay): Promise<void> {
    const url = new URL(options.path, options.origin)
    pathBelow(this.#connections, url) // refuses other origins
    const headers = readHeaders(options.headers)
    const identity = await this.#connections.identityFor(headers)
    this.#dispatchAs(
      { ...options, headers },
      identity,
      replay.first(identity.credential, mayRepeat(options)),
    )
    const next = await replay.renewed
    if (next)
      this.#dispatchAs({ ...options, headers }, this.#connections.identityOf(next), replay.last())
  }

  #dispatchAs(
    options: UndiciRequest & { readonly headers: RequestHeaders },
    { credential, generation }: Identity,
    handler: object,
  ): void {
    const authorization = credential && authorizationOf(credential)
    const fixed = this.#connections.options.headers
    const headers = withIdentity(options.headers, fixed, authorization)
    this.#poolOf(generation).dispatch({ ...options, headers }, handler)
  }

  #poolOf(generation: Identity['generation']): UndiciDispatcher {
    for (const [old, pool] of this.#pools)
      if (old.retired) {
        this.#pools.delete(old)
        pool.destroy().catch(() => {}) // its connections are gone already
      }
    const found = this.#pools.get(generation)
    if (found) return found
    const made = new this.#undici.Agent({
      connect: (_options, connected) => {
        generation.openHttp1().then(
          (socket) => connected(null, socket),
          (error: Error) => connected(error, null),
        )
      },
      pipelining: 1,
      connections: this.#connections.route.maxConnections,
    })
    this.#pools.set(generation, made)
    return made
  }
}

const mayRepeat = ({ body }: UndiciRequest): boolean =>
  body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array

/** The headers of a dispatch in any of the forms that undici takes, names in lower case. */
function readHeaders(headers: unknown): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {}
  for (const [name, value] of headerPairs(headers)) {
    const key = name.toLowerCase()
    const before = result[key]
    const values = Array.isArray(value) ? value.map(String) : [String(value)]
    const all = before === undefined ? values : [before, values].flat()
    result[key] = all.length === 1 ? (all[0] ?? '') : all
  }
  return result
}

/** Of pairs, such as a Map or the Headers of `fetch`. */
const isIterable = (headers: unknown): headers is Iterable<unknown> =>
  !Array.isArray(headers) && Symbol.iterator in Object(headers)

function headerPairs(headers: unknown): (readonly [string, unknown])[] {
  if (headers === undefined || headers === null) return []
  if (isIterable(headers)) return [...headers] as [string, unknown][]
  if (!Array.isArray(headers)) return Object.entries(headers)
  const flat: unknown[] = headers.every(Array.isArray) ? headers.flat() : headers
  return Array.from(
    { length: flat.length / 2 },
    (_, index) => [String(flat[index * 2]), flat[index * 2 + 1]] as const,
  )
}
