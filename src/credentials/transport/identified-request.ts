import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Credential, Refusal } from '../credential.ts'
import type { Connections, Identity } from './connections.ts'
import { sendOnce } from './send-once.ts'
import type { TransportRequest, TransportResponse } from './transport-types.ts'

const unauthorized = 401
/** Longer than any refusal takes from its head to its end. */
const restMs = 200

/** Sends requests as whom the credentials say, and once more with a new credential when one is refused. */
export async function sendIdentified(
  connections: Connections,
  request: TransportRequest,
): Promise<TransportResponse> {
  // Whoever brings an identity gets neither ours nor a connection that proves it.
  if (!connections.source || request.headers['authorization'] !== undefined)
    return sendAnonymous(connections, request)
  const identity = await connections.identity(request.signal)
  const { credential } = identity
  const response = await sendAs(connections, request, identity)
  if (response.status !== unauthorized || !credential || request.relayed) return response
  const next = await renewAfter(connections, request, { used: credential, response })
  if (!next || !isReplayable(request)) return response
  await readOut(response.body)
  return sendAs(connections, request, connections.identityOf(next))
}

const sendAnonymous = (
  connections: Connections,
  request: TransportRequest,
): Promise<TransportResponse> => {
  const again = (): Identity => ({ credential: undefined, generation: connections.anonymous() })
  return sendOnce({ connections, request, identity: again(), again })
}

const sendAs = (
  connections: Connections,
  request: TransportRequest,
  identity: Identity,
): Promise<TransportResponse> =>
  sendOnce({ connections, request, identity, again: () => connections.identity(request.signal) })

/** A source that fails to renew fails the request that needed it. */
async function renewAfter(
  connections: Connections,
  { signal }: TransportRequest,
  { used, response }: { readonly used: Credential; readonly response: TransportResponse },
): Promise<Credential | undefined> {
  try {
    return await connections.source?.renew(used, refusalOf(response), signal)
  } catch (error) {
    discard(response.body)
    throw error
  }
}

/** What a source may learn of an answer that refuses its credential. */
export function refusalOf({
  status,
  headers,
}: {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}): Refusal {
  const all: Record<string, readonly string[]> = Object.create(null)
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) all[name] = Array.isArray(value) ? value : [value]
  return { status, headers: all }
}

const isReplayable = ({ stream }: TransportRequest): boolean =>
  stream === undefined || typeof stream === 'function'

/** Waits a moment for the rest of a refusal, whose connection can then carry the replay. */
function readOut(body: Readable): Promise<void> {
  discard(body)
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, restMs)
    body.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Reads a body to its end so that its connection can serve again, unless it is a long one. */
export function discard(body: Readable): void {
  let left = 64 * 1024
  body.on('error', () => {})
  body.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) body.destroy()
  })
}
