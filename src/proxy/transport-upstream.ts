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
  { headers, body: _, stream: __, ...request }: UpstreamRequest,
): Promise<UpgradeOutcome> {
  const { upgrade, connection: ___, ...others } = headers
  const { upgraded, refused } = await requestUpgrade(connections, {
    ...request,
    headers: { ...others, upgrade: String(upgrade) },
  })
  if (upgraded) return { kind: 'switched', ...upgraded }
  const { statusCode: status = 502, headers: told } = refused
  return { kind: 'refused', status, headers: told, body: refused }
}
