import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent } from 'node:https'
import { unbracketed } from './addresses.ts'
import { refusalOf } from './authenticated-request.ts'
import { failWithoutSocket } from './connection-pool.ts'
import type { Connections, Identity } from './connections.ts'
import { ClientConfigInvalid } from './errors.ts'
import { authorizationOf, isLongLived } from './send.ts'
import type { RequestHeaders } from './types.ts'

const unauthorized = 401

/** Where a request wants to go, as Node's http client tells its agent. */
interface Target {
  readonly host?: string | null
  readonly port?: string | number | null
}

/**
 * An `https.Agent` for clients of others: each request gets a connection that proves the certificate of
 * the moment, and a 401 has the credential renewed. It connects to the cluster only, sets no headers and
 * leaves the connections to their owner.
 */
export function createAgent(connections: Connections): Agent {
  return new RotatingAgent(connections, {})
}

/** The same for requests with these headers: one that brings an identity gets a connection that proves none of ours. */
export function agentFor(connections: Connections, headers: RequestHeaders): Agent {
  return new RotatingAgent(connections, headers)
}

class RotatingAgent extends Agent {
  readonly #connections: Connections
  readonly #headers: RequestHeaders

  constructor(connections: Connections, headers: RequestHeaders) {
    super({ keepAlive: true })
    this.#connections = connections
    this.#headers = headers
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
    const identity = await this.#connections.identityFor(this.#headers)
    const { generation } = identity
    request.once('response', (response: IncomingMessage) => this.#heed(response, request, identity))
    const longLived = isLongLived(request.path) || request.hasHeader('upgrade')
    const pool = longLived ? generation.streams : generation.requests
    pool.addRequest(request)
  }

  /** The request is its client's, so it is not replayed; the next one has a newer credential. */
  #heed(response: IncomingMessage, request: ClientRequest, { credential }: Identity): void {
    const { statusCode: status, headers } = response
    if (status !== unauthorized || !credential) return
    const sent = request.getHeader('authorization')
    if (sent !== undefined && String(sent) !== authorizationOf(credential)) return
    const renewed = this.#connections.source?.renew(credential, refusalOf({ status, headers }))
    renewed?.catch(() => {}) // the next request fails with it
  }
}

/** Tells whether a request goes to one of the cluster's addresses. */
function isAddressOf({ route }: Connections, { host, port }: Target): boolean {
  const name = unbracketed(host ?? '').toLowerCase()
  const wanted = Number(port ?? 443)
  return route.addresses.all.some((one) => one.tls && one.host === name && one.port === wanted)
}
