import type { RequestFn } from '../cluster-request.ts'
import { withCompression } from './compression.ts'
import type { Connections } from './connections.ts'
import { sendIdentified } from './identified-request.ts'
import type { Transport } from './transport-types.ts'

/** A transport on these connections; it follows no redirects. Destroying it cuts the connections. */
export function createTransport(connections: Connections): Transport {
  return {
    server: connections.server,
    send: requestFunction(connections),
    destroy: () => connections.destroy(),
  }
}

/** Everything that the options put round a request, the wrapper added last outermost. */
export function requestFunction(connections: Connections): RequestFn {
  const { wrappers = [], disableCompression } = connections.options
  const identified: RequestFn = (request) => sendIdentified(connections, request)
  const inner = disableCompression ? identified : withCompression(identified)
  return wrappers.reduce<RequestFn>((next, wrap) => wrap(next), inner)
}
