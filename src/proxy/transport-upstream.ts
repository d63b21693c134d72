import { STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import {
  type Connections,
  createTransport,
  openUpgrade,
  UpgradeRefused,
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
  { method, path, headers, signal }: UpstreamRequest,
): Promise<UpgradeOutcome> {
  const { upgrade, connection: _, ...others } = headers
  try {
    const upgraded = await openUpgrade(connections, {
      method,
      path,
      headers: { ...others, upgrade: String(upgrade) },
      signal,
    })
    return { kind: 'switched', ...upgraded }
  } catch (error) {
    if (error instanceof UpgradeRefused) return refusedAnswer(error)
    throw error
  }
}

function refusedAnswer({ status: told, message }: UpgradeRefused): UpgradeOutcome {
  // A success is none for who wanted another protocol.
  const status = told >= 400 ? told : 502
  const text = Buffer.from(`${STATUS_CODES[status] ?? 'Refused'}: ${message}\n`)
  return {
    kind: 'refused',
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': String(text.length),
    },
    body: Readable.from([text]),
  }
}
