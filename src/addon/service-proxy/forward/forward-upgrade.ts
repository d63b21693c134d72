import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http'
import type { Duplex } from 'node:stream'
import { headOf, responseHead } from '../../../http/index.ts'
import { keepTunnel, tunnelNameIn } from '../token-renewal.ts'
import { clientHeaders } from './answer-headers.ts'
import { answerIn } from './backend-answer.ts'
import { type Forwarding, unreachable } from './exchange.ts'
import { sendAnswer } from './forward-request.ts'
import { relay } from './relay.ts'

/** A client that asks for another protocol, and how its socket is had. */
export interface LeavingClient {
  readonly response: ServerResponse
  /** What the client has sent behind its request: kept back until the backend has agreed. */
  readonly head: Buffer
  readonly protocol: string
  claim(): Duplex
}

type Outcome =
  | { readonly answer: IncomingMessage; readonly backend: Duplex; readonly head: Buffer }
  | { readonly answer: IncomingMessage; readonly backend?: undefined }

/**
 * Asks a backend for the protocol and joins the two connections; resolves when both are closed. Any other answer is
 * passed on and ends both, so that nothing can hide behind a handshake that failed.
 */
export async function forwardUpgrade(forwarding: Forwarding, client: LeavingClient): Promise<void> {
  const { connections, backend, signal } = forwarding
  const connection = await connections.open(backend, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    throw unreachable(error)
  })
  connection.on('error', () => {}) // until it is joined, its end is what counts
  const outcome = await ask(forwarding, client.protocol, connection).catch((error: unknown) => {
    connection.destroy()
    signal.throwIfAborted()
    throw unreachable(error)
  })
  if (outcome.backend) {
    await join(forwarding, client, outcome)
    return
  }
  try {
    await sendAnswer(forwarding, answerIn(outcome.answer), client.response)
  } finally {
    connection.destroy()
  }
}

async function ask(forwarding: Forwarding, protocol: string, connection: Duplex): Promise<Outcome> {
  const { backend, request, path, headers, signal } = forwarding
  const outgoing: ClientRequest = openRequest({
    createConnection: () => connection,
    protocol: 'http:',
    host: backend.host,
    port: backend.port,
    method: request.method,
    path,
    headers: [...headers, 'Connection', 'Upgrade', 'Upgrade', protocol],
  })
  const awaited = headOf(outgoing, signal)
  outgoing.end()
  const { answer, switched } = await awaited
  if (!switched) return { answer }
  if (answer.headers.upgrade?.toLowerCase() === protocol.toLowerCase())
    return { answer, backend: switched.socket, head: switched.head }
  throw new Error('it changed to another protocol than it was asked for')
}

function join(
  forwarding: Forwarding,
  client: LeavingClient,
  { answer, backend, head }: Extract<Outcome, { backend: Duplex }>,
): Promise<void> {
  const { places, meters, signal, added } = forwarding
  const over = new AbortController()
  const headers = clientHeaders(answer.rawHeaders, places)
  for (const [name, values] of added) headers.set(name, [...(headers.get(name) ?? []), ...values])
  const socket = claimed(client, backend)
  const list = [...headers].flatMap(([name, values]) => values.flatMap((value) => [name, value]))
  socket.write(
    responseHead(101, ['Upgrade', client.protocol, 'Connection', 'Upgrade', ...list]),
    'latin1',
  )
  const name = tunnelNameIn(answer.headers)
  if (name !== undefined) void keepTunnel(forwarding, name, over.signal)
  if (head.length > 0) backend.unshift(head)
  if (client.head.length > 0) socket.unshift(client.head)
  return new Promise((resolve) => {
    // Each direction ends by itself; a cut on one side is a cut on the other.
    const cut = (): void => {
      over.abort()
      socket.destroy()
      backend.destroy()
      resolve()
    }
    for (const side of [socket, backend]) side.once('close', cut).on('error', cut)
    signal.addEventListener('abort', cut, { once: true })
    if (signal.aborted) cut()
    relay(socket, backend, meters.toBackend)
    relay(backend, socket, meters.toClient)
  })
}

function claimed(client: LeavingClient, backend: Duplex): Duplex {
  try {
    return client.claim()
  } catch (error) {
    backend.destroy()
    throw error
  }
}
