import type { ClientRequest } from 'node:http'
import { Agent } from 'node:https'
import { failWithoutSocket } from './connection-pool.ts'
import type { Connections } from './connections.ts'
import { isLongLived } from './send-once.ts'
import { unbracketed } from './server-address.ts'
import { ClientConfigInvalid } from './transport-errors.ts'

/** Where a request wants to go, as Node's http client tells its agent. */
interface Target {
  readonly host?: string | null
  readonly port?: string | number | null
}

/**
 * An `https.Agent` for clients of others: each request gets a connection that proves the certificate of
 * the moment. It connects to the cluster only, sets no headers and leaves the connections to their owner.
 */
export function createAgent(connections: Connections): Agent {
  return new RotatingAgent(connections)
}

class RotatingAgent extends Agent {
  readonly #connections: Connections

  constructor(connections: Connections) {
    super({ keepAlive: true })
    this.#connections = connections
  }

  /** Called by Node's http client for every request. */
  addRequest(request: ClientRequest, options: Target): void {
    this.#hand(request, options).catch((error: unknown) => {
      failWithoutSocket(request, error instanceof Error ? error : new Error('unknown'))
    })
  }

  async #hand(request: ClientRequest, options: Target): Promise<void> {
    if (!isAddressOf(this.#connections, options))
      throw new ClientConfigInvalid(
        `this agent connects to ${this.#connections.server} only, since it proves an identity there`,
      )
    const { generation } = await this.#connections.identity()
    const longLived = isLongLived(request.path) || request.hasHeader('upgrade')
    const pool = longLived ? generation.streams : generation.requests
    pool.addRequest(request)
  }
}

/** Tells whether a request goes to one of the cluster's addresses. */
function isAddressOf({ route }: Connections, { host, port }: Target): boolean {
  const name = unbracketed(host ?? '').toLowerCase()
  const wanted = Number(port ?? 443)
  return route.addresses.all.some((one) => one.tls && one.host === name && one.port === wanted)
}
