import {
  type UpgradeOutcome as AskedUpgrade,
  type Connections,
  createTransport,
  requestUpgrade,
  type UpgradeRequest,
} from '../credentials/transport/index.ts'
import type { UpgradeOutcome, Upstream, UpstreamRequest } from './upstream.ts'

/** The API server behind connections that prove who the user is. */
export function upstreamOn(connections: Connections): Upstream {
  const transport = createTransport(connections)
  return {
    server: connections.server,
    send: (request) => transport.send(request),
    upgrade: (request) => upgradeBy((asked) => requestUpgrade(connections, asked), request),
    destroy: () => transport.destroy(),
  }
}

/** Asks for another protocol in whichever way a connection is had. */
export async function upgradeBy(
  ask: (request: UpgradeRequest) => Promise<AskedUpgrade>,
  { method, path, headers, relayed, signal }: UpstreamRequest,
): Promise<UpgradeOutcome> {
  const { upgrade, connection: _, ...others } = headers
  const { upgraded, refused } = await ask({
    method,
    path,
    headers: { ...others, upgrade: String(upgrade) },
    ...(relayed && { relayed }),
    signal,
  })
  if (upgraded) return { kind: 'switched', ...upgraded }
  const { statusCode: status = 502, headers: told } = refused
  return { kind: 'refused', status, headers: told, body: refused }
}
