import {
  type Connections,
  createTransport,
  requestUpgrade,
} from '../credentials/transport/index.ts'
import type { UpgradeOutcome, Upstream, UpstreamRequest } from './upstream.ts'

/** The API server behind connections that prove who the user is. */
export function upstreamOn(connections: Connections): Upstream {
  const transport = createTransport(connections)
  return {
    server: connections.server,
    send: (request) => transport.send(request),
    upgrade: (request) => upgradeOn(connections, request),
    destroy: () => transport.destroy(),
  }
}

async function upgradeOn(
  connections: Connections,
  { method, path, headers, relayed, signal }: UpstreamRequest,
): Promise<UpgradeOutcome> {
  const { upgrade, connection: _, ...others } = headers
  const { upgraded, refused } = await requestUpgrade(connections, {
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
